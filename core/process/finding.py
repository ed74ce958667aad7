"""Finding the living worker of a run whose supervisor is gone: by what it wrote itself, checked against the process."""

from __future__ import annotations

import time
from typing import Final

import psutil

from llmtui.core.errors import MachineError
from llmtui.core.process.worker_process import GONE, WorkerProcess
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventReader

_LIMIT: Final = 10.0


def find_worker(directory: RunDirectory) -> tuple[WorkerProcess, int]:
    """The worker and its attempt.

    A worker that has just started and not said who it is yet is waited for. If its first word is no longer
    true (another boot, a pid that is somebody else's now), it is the process whose command line names the run. One
    that has ended meanwhile is given all the same: how it ended is still to be told.

    Raises:
        MachineError: something holds `worker.lock`, but no such process is found.
    """
    end = time.monotonic() + _LIMIT
    while True:
        start = _last_start(directory)
        pid = start.pid if start is not None and _is_of_run(start.pid, directory) else None
        if start is not None and pid is not None and start.boot_id == boot_id():
            return WorkerProcess(pid, directory), start.attempt
        if not locks.is_held(directory.worker_lock):
            return WorkerProcess(GONE, directory), start.attempt if start is not None else directory.last_attempt()
        if time.monotonic() > end:
            break
        time.sleep(0.2)
    for process in psutil.process_iter():
        if process.pid != psutil.Process().pid and _is_of_run(process.pid, directory):
            return WorkerProcess(process.pid, directory), directory.last_attempt()
    raise MachineError("a process holds worker.lock, but none with the run's id is found", place=directory.id,
                       hint=f"is it in another container or another user's? fuser {directory.worker_lock}")  # fmt: skip


def _last_start(directory: RunDirectory) -> ev.WorkerStart | None:
    last = None
    for event in EventReader(directory.events).read_new():
        if isinstance(event, ev.WorkerStart):
            last = event
    return last


def _is_of_run(pid: int, directory: RunDirectory) -> bool:
    """Whether a living process's command line names the run as a worker's does (a supervisor's does too)."""
    try:
        process = psutil.Process(pid)
        arguments = process.cmdline()
        alive = process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
    return alive and str(directory.path) in arguments and "llmtui.core.process.supervise" not in arguments
