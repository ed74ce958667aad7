"""Deleting a run: never a living one, out of sight in one rename, then from the disk."""

from __future__ import annotations

import shutil

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.home import trash_folder
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import liveness


def check_deletable(directory: RunDirectory) -> None:
    """Refuse a living run.

    Raises:
        RefusedError: a process of it lives.
    """
    if liveness(directory).any:
        raise RefusedError(f"{directory.id} is going on", place=directory.id, hint=f"llmtui stop {directory.id} first")


def delete_run(directory: RunDirectory) -> None:
    """Delete a run with everything in it. Its lock is held meanwhile, so that nobody can resume it.

    Raises:
        RefusedError: a process of it lives.
        MachineError: the files cannot be removed.
    """
    check_deletable(directory)
    with locks.take(directory.supervisor_lock), locks.take(directory.worker_lock):
        trash = trash_folder() / directory.id
        try:
            directory.path.rename(trash)
        except OSError as error:
            raise MachineError(f"the run cannot be removed: {error.strerror}", place=str(directory.path),
                               hint="check who owns the files") from error  # fmt: skip
    shutil.rmtree(trash, ignore_errors=True)
