"""Runs with a stand-in worker, started the way every run is, and conditions to wait for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from llmtui.core.home import runs_folder
from llmtui.core.process import spawning
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState

ROOT = Path(__file__).parents[3]
Event = TypeVar("Event", bound=ev.EventBase)


def new_run(**sections: Any) -> RunDirectory:
    """A run directory with a small preset on the CPU; `limits={"restarts": 2}` and such replace its sections."""
    preset = {
        "model": {"name_or_path": "nobody/nothing"}, "dataset": {"name_or_path": "nobody/rows"},
        "gpu_split": {"gpus": "none"}, "limits": {"restarts": 0}, **sections,
    }  # fmt: skip
    return create_run(
        runs_folder(),
        json.dumps(preset),
        name="small",
        preset_name="small",
        task="finetune",
        description="",
        command=[],
    )


def spawn(directory: RunDirectory, script: str) -> RunDirectory:
    """Start its supervisor with a stand-in worker that plays this script; returns when the lock is held."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawning, "MODULE", "tests.core.process.supervise_stand_in")
        patch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
        patch.setenv("STAND_IN", script)
        spawning.spawn_supervisor(directory)
    return directory


def ended(directory: RunDirectory, limit: float = 60.0) -> RunState:
    """The state once no process of the run holds a lock, its summary included."""

    def over() -> RunState | None:
        state = read_state(directory)
        return state if state.final and not state.alive else None

    state: RunState = until(over, f"the end of {directory.id}", limit)
    until(lambda: not processes_of(directory), "the end of every process", 10)
    return state


def until(condition: Callable[[], Any], what: str, limit: float = 30.0) -> Any:
    """Wait until the condition gives something true."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {limit:g} s in vain for {what}"
        time.sleep(0.02)
    return value


def until_step(directory: RunDirectory, step: int) -> None:
    """Wait until the worker has made this step."""
    until(lambda: read_state(directory).step >= step, f"step {step}")


def monitor(directory: RunDirectory, kind: type[Event]) -> list[Event]:
    """The supervisors' events of one kind."""
    return [event for event in EventReader(directory.monitor).read_new() if isinstance(event, kind)]


def warnings(directory: RunDirectory) -> dict[str, str]:
    """The supervisors' warnings by code."""
    return {event.code: event.text for event in monitor(directory, ev.WarningEvent)}


def supervisor_pid(directory: RunDirectory) -> int:
    """The newest supervisor's pid."""
    return monitor(directory, ev.SupervisorStart)[-1].pid


def worker_pid(directory: RunDirectory) -> int:
    """The newest worker's pid, as it says itself."""
    starts = [e for e in EventReader(directory.events).read_new() if isinstance(e, ev.WorkerStart)]
    return starts[-1].pid


def processes_of(directory: RunDirectory) -> list[psutil.Process]:
    """Living processes that carry the run's id in their arguments."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(directory.id in word for word in arguments):
            found.append(process)
    return found


def kill_and_wait(directory: RunDirectory, pid: int, lock: Path) -> None:
    """SIGKILL a process of the run and wait until its lock is free."""
    psutil.Process(pid).kill()
    until(lambda: not locks.is_held(lock), f"a free {lock.name}")
