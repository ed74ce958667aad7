"""Runs whose supervisor was killed: a new supervisor is started for each whose worker lives, or finished meanwhile.

Looked for by every command, so nothing heavy is imported unless one is found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory

_TAIL_BYTES: Final = 4096


def orphans(runs: Path) -> list[RunDirectory]:
    """Runs whose worker lives without a supervisor, or has finished without one (their summary is missing)."""
    found = []
    for path in runs.iterdir():
        directory = RunDirectory(path)
        if locks.is_held(directory.supervisor_lock):
            continue
        if locks.is_held(directory.worker_lock) or finished_alone(directory):
            found.append(directory)
    return found


def finished_alone(directory: RunDirectory) -> bool:
    """Whether the worker's last word is that it finished, and no supervisor was there to say so."""
    if directory.summary_json.exists() or b'"outcome":"finished"' not in _last_line(directory.events):
        return False
    monitor = _tail(directory.monitor)
    return b'"state":"finished"' not in monitor


def _last_line(path: Path) -> bytes:
    return _tail(path).rstrip(b"\n").rpartition(b"\n")[2]


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def adopt_orphans(runs: Path) -> list[RunDirectory]:
    """Start a supervisor for each orphan; one that another command adopts first is left to it."""
    adopted = []
    for directory in orphans(runs):
        from llmtui.core.process.spawning import spawn_supervisor

        try:
            spawn_supervisor(directory, adopt=True)
        except LlmtuiError:
            continue
        adopted.append(directory)
    return adopted
