"""What an attempt is started with: checkpoint, cards, versions, git state."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo, read_attempt
from llmtui.core.runs.checkpoints import Found
from llmtui.core.runs.directory import RunDirectory

_LIBRARIES: Final = (
    "llmtui", "torch", "transformers", "peft", "bitsandbytes", "accelerate", "datasets", "tokenizers", "safetensors",
)  # fmt: skip
FORK_FILE: Final = "fork.json"
_GIT_LIMIT: Final = 10.0


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a forked run starts from: a checkpoint of its parent. With changed settings only its weights are taken."""

    checkpoint: str
    step: int
    weights_only: bool


def describe_attempt(
    directory: RunDirectory, number: int, found: Found, gpus: Sequence[AttemptGpu], driver: str | None,
    working_folder: Path | None = None,
) -> AttemptInfo:  # fmt: skip
    """The content of `attempts/N.yaml`.

    Args:
        working_folder: where the user stood, whose repository's state is noted; None notes none.
    """
    checkpoint = str(found.path.relative_to(directory.path)) if found.path else None
    step, weights_only = found.step, False
    if checkpoint is None and (fork := read_fork(directory)) is not None:
        checkpoint, step, weights_only = fork.checkpoint, fork.step, fork.weights_only
    return AttemptInfo(
        attempt=number, started=time.time(), checkpoint=checkpoint, from_step=step, weights_only=weights_only,
        gpus=list(gpus), driver=driver, versions=library_versions(),
        git=git_state(working_folder) if working_folder else {}, python=platform.python_version(),
        hostname=os.uname().nodename,
    )  # fmt: skip


def read_fork(directory: RunDirectory) -> Fork | None:
    """The fork's origin; None when the run is no fork."""
    try:
        return msgspec.json.decode((directory.path / FORK_FILE).read_bytes(), type=Fork)
    except (OSError, msgspec.DecodeError):
        return None


def library_versions() -> dict[str, str]:
    """Installed versions, from package metadata: nothing is imported."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def changed_versions(directory: RunDirectory, now: AttemptInfo) -> str:
    """What was upgraded since the attempt before, in a sentence; empty when nothing was, or there was none."""
    try:
        before = read_attempt(directory, now.attempt - 1)
    except LlmtuiError:
        return ""
    old = before.versions | {"python": before.python, "NVIDIA driver": before.driver or ""}
    new = now.versions | {"python": now.python, "NVIDIA driver": now.driver or ""}
    changed = [f"{name} {old.get(name) or '–'} → {new.get(name) or '–'}" for name in sorted({*old, *new})
               if old.get(name) != new.get(name)]  # fmt: skip
    return f"since attempt {before.attempt} other versions are installed: {', '.join(changed)}" if changed else ""


def git_state(folder: Path) -> dict[str, Any]:
    """Commit and whether there are changes, of the repository that a folder is in; empty outside one."""
    commit = _git(folder, "rev-parse", "HEAD")
    changes = _git(folder, "status", "--porcelain") if commit else None
    return {} if commit is None or changes is None else {"commit": commit.strip(), "changed": bool(changes.strip())}


def _git(folder: Path, *arguments: str) -> str | None:
    """A git command's output; None when there is none. A mount that hangs is left to itself."""
    try:
        process = subprocess.Popen(
            ["git", "-C", str(folder), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, errors="replace",
        )  # fmt: skip
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=_GIT_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()  # not waited for: it may be stuck in the kernel
        return None
    return output if process.returncode == 0 else None
