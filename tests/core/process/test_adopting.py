"""A killed supervisor is replaced: the worker never notices, and the run's story has no gap."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil
import pytest

from llmtui.core.errors import MachineError
from llmtui.core.home import runs_folder
from llmtui.core.process import adopting, spawning
from llmtui.core.process.finding import find_worker
from llmtui.core.process.stop import stop
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.log import EventWriter
from llmtui.core.runs.reader import read_state
from tests.core.process.runs import (
    ROOT,
    ended,
    kill_and_wait,
    monitor,
    new_run,
    spawn,
    supervisor_pid,
    until,
    until_step,
    worker_pid,
)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adopting supervisors restart nothing and need no script, but are the ones with quick limits."""
    monkeypatch.setattr(spawning, "MODULE", "tests.core.process.supervise_stand_in")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("STAND_IN", "finish")


def test_a_killed_supervisor_is_replaced_and_the_worker_never_notices() -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 2)
    pid = worker_pid(directory)
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    state = read_state(directory)
    assert (state.state, state.liveness.worker) == ("running", True)
    assert "adopted by the next llmtui command" in state.cause
    assert adopting.adopt_orphans(runs_folder()) == [directory]
    assert read_state(directory).liveness.supervisor
    assert adopting.adopt_orphans(runs_folder()) == []
    until(lambda: read_state(directory).cause == "adopted after the supervisor was killed", "the adoption")
    assert worker_pid(directory) == pid
    assert psutil.Process(pid).is_running()
    stop(directory)
    state = ended(directory)
    assert state.state == "stopped"
    assert "every process is gone" in state.cause


def test_a_kill_reaches_a_run_whose_supervisor_is_gone() -> None:
    directory = spawn(new_run(), "silent steps:2 hang")
    until_step(directory, 2)
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    stop(directory, "kill")
    state = ended(directory)
    assert (state.state, state.exit_code) == ("stopped", 4)


def test_a_crash_under_an_adopting_supervisor_is_restarted_as_any_other() -> None:
    directory = spawn(new_run(limits={"restarts": 1}), "steps:3 until_stop")
    until_step(directory, 4)
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    adopting.adopt_orphans(runs_folder())
    psutil.Process(worker_pid(directory)).kill()
    state = ended(directory)
    assert (state.state, state.attempt) == ("finished", 2)
    causes = [s.cause for s in monitor(directory, ev.StateEvent)]
    assert any("gone without a last word; restart 1 of 1" in cause for cause in causes)


def test_a_run_that_finished_without_a_supervisor_gets_its_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = spawn(new_run(), "steps:2 wait:go finish")
    until_step(directory, 2)
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    (directory.path / "go").touch()
    until(lambda: not read_state(directory).alive, "the worker's end")
    assert read_state(directory).state == "finished"
    monkeypatch.setenv("STAND_IN_SUMMARY", "1")
    assert adopting.adopt_orphans(runs_folder()) == [directory]
    assert ended(directory, 90).state == "finished"
    assert directory.summary_json.exists()
    assert adopting.adopt_orphans(runs_folder()) == []


def test_a_worker_that_ends_before_it_is_adopted_is_not_started_again() -> None:
    directory = spawn(new_run(), "steps:2 wait:go error:data")
    until_step(directory, 2)
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    (directory.path / "go").touch()
    until(lambda: not read_state(directory).alive, "the worker's end")
    spawning.spawn_supervisor(directory, adopt=True)  # its command had seen the worker alive
    state = ended(directory)
    assert (state.state, state.exit_code, state.attempt) == ("failed", 2, 1)
    assert "row 3: it cannot be" in state.cause


def test_a_kill_between_start_and_lock_never_leaves_two_workers() -> None:
    """The worker counts as alive from its first moment, before it has taken the lock itself."""
    directory = spawn(new_run(), "until_stop")
    pid = until(lambda: [e.pid for e in monitor(directory, ev.Attempt)], "a worker")[0]
    kill_and_wait(directory, supervisor_pid(directory), directory.supervisor_lock)
    assert locks.is_held(directory.worker_lock)
    assert adopting.adopt_orphans(runs_folder()) == [directory]
    until_step(directory, 2)
    assert worker_pid(directory) == pid
    stop(directory)
    ended(directory)


def test_a_stranger_with_the_workers_pid_is_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_run()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with EventWriter(directory.events) as log:
            log.write(ev.WorkerStart(boot_id=boot_id(), attempt=1, pid=stranger.pid))
        monkeypatch.setattr("llmtui.core.process.finding._LIMIT", 0.3)
        with locks.take(directory.worker_lock, "shared"), pytest.raises(MachineError, match="none with the run's id"):
            find_worker(directory)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_looking_for_orphans_is_cheap() -> None:
    """Asked by every command: nothing heavy is loaded when there is none."""
    for _ in range(3):
        new_run()
    script = (
        "import sys; from pathlib import Path; from llmtui.core.process.adopting import adopt_orphans\n"
        f"assert adopt_orphans(Path({json.dumps(str(runs_folder()))})) == []\n"
        "assert not {'psutil', 'pydantic', 'pynvml', 'ruamel.yaml', 'torch'} & set(sys.modules), sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
