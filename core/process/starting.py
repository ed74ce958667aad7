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

from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo
from llmtui.core.runs.checkpoints import Found
from llmtui.core.runs.directory import RunDirectory

_LIBRARIES: Final = (
    "llmtui", "torch", "transformers", "peft", "bitsandbytes", "accelerate", "datasets", "tokenizers", "safetensors",
)  # fmt: skip
FORK_FILE: Final = "fork.json"


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What a forked run starts from: a checkpoint of its parent. With changed settings only its weights are taken."""

    checkpoint: str
    step: int
    weights_only: bool


def describe_attempt(
    directory: RunDirectory, number: int, found: Found, gpus: Sequence[AttemptGpu], driver: str | None
) -> AttemptInfo:
    """The content of `attempts/N.yaml`."""
    checkpoint = str(found.path.relative_to(directory.path)) if found.path else None
    step, weights_only = found.step, False
    if checkpoint is None and (fork := read_fork(directory)) is not None:
        checkpoint, step, weights_only = fork.checkpoint, fork.step, fork.weights_only
    return AttemptInfo(
        attempt=number, started=time.time(), checkpoint=checkpoint, from_step=step, weights_only=weights_only,
        gpus=list(gpus), driver=driver, versions=library_versions(), git=git_state(Path.cwd()),
        python=platform.python_version(), hostname=os.uname().nodename,
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


def git_state(folder: Path) -> dict[str, Any]:
    """Commit and whether there are changes, of the repository the run was started in; empty outside one."""
    try:
        commit = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True,
                                timeout=5, check=False)  # fmt: skip
        if commit.returncode:
            return {}
        changes = subprocess.run(["git", "-C", str(folder), "status", "--porcelain"], capture_output=True, text=True,
                                 timeout=10, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {"commit": commit.stdout.strip(), "changed": bool(changes.stdout.strip())}
