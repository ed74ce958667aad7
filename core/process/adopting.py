"""Runs whose supervisor was killed while the worker lives: a new supervisor is started for each.

Looked for by every command, so nothing heavy is imported unless one is found.
"""

from __future__ import annotations

from pathlib import Path

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory


def orphans(runs: Path) -> list[RunDirectory]:
    """Runs whose worker lives without a supervisor."""
    found = []
    for path in runs.iterdir():
        directory = RunDirectory(path)
        if locks.is_held(directory.worker_lock) and not locks.is_held(directory.supervisor_lock):
            found.append(directory)
    return found


def adopt_orphans(runs: Path) -> list[RunDirectory]:
    """Start a supervisor for each orphan; one that another command adopts first is left to it."""
    adopted = []
    for directory in orphans(runs):
        from llmtui.core.process.launch import spawn_supervisor

        try:
            spawn_supervisor(directory)
        except LlmtuiError:
            continue
        adopted.append(directory)
    return adopted
