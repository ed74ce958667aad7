"""The worker's process: output kept at both ends, signals that never reach a stranger, an end that is an end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from llmtui.core.errors import MachineError
from llmtui.core.process import worker_process
from llmtui.core.process.worker_process import GONE, WorkerProcess, bound_output, worker_environment
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from tests.core.process.runs import new_run, until


def start(directory: RunDirectory, code: str) -> WorkerProcess:
    environment = worker_environment(directory, [], os.environ)
    return WorkerProcess.start([sys.executable, "-c", f"{code}  # {directory.path}"], directory, environment)


def test_output_is_kept_at_both_ends_only(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"HEAD" + b"x" * 50_000 + b"TAIL")
    bound_output(path, keep=50_000)
    assert path.stat().st_size == 50_008
    with path.open("ab") as worker:  # goes on writing at the new end
        bound_output(path, keep=10_000)
        worker.write(b" and more")
    data = path.read_bytes()
    assert data.startswith(b"HEAD")
    assert data.endswith(b"TAIL and more")
    assert b"output cut here" in data
    assert len(data) < 11_000
    bound_output(tmp_path / "missing")


def test_a_worker_is_alive_from_its_first_moment_and_its_exit_code_is_known() -> None:
    directory = new_run()
    worker = start(directory, "import sys; sys.exit(7)")
    assert not locks.is_held(directory.supervisor_lock)
    assert worker.wait(20)
    assert worker.returncode == 7
    assert not locks.is_held(directory.worker_lock)
    worker.close()


def test_a_second_worker_is_never_started_beside_a_living_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_LOCK_LIMIT", 0.3)
    directory = new_run()
    worker = start(directory, "import time; time.sleep(60)")
    assert locks.is_held(directory.worker_lock)
    with pytest.raises(MachineError, match="earlier attempt still lives"):
        start(directory, "pass")
    worker.kill()
    assert worker.wait(20)
    assert worker.returncode == -signal.SIGKILL
    worker.close()


def test_a_program_that_is_not_there_is_a_sentence() -> None:
    directory = new_run()
    with pytest.raises(MachineError, match="cannot be started"):
        WorkerProcess.start(["/no/such/python"], directory, {})
    assert not locks.is_held(directory.worker_lock)


def test_everything_that_a_worker_started_is_found_and_ended() -> None:
    directory = new_run()
    child = f"import time; time.sleep(300)  # {directory.path}"
    worker = start(directory, f"import subprocess as s, sys; [s.Popen([sys.executable, '-c', {child!r}], "
                              "start_new_session=bool(i)) for i in range(2)]")  # fmt: skip
    assert worker.wait(20)
    until(lambda: len(worker.leftovers()) == 2, "two children that outlive it")
    assert worker.end_everything() == []
    assert worker.leftovers() == []
    worker.close()


def test_an_ended_worker_and_a_stranger_get_no_signal() -> None:
    directory = new_run()
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        gone = WorkerProcess(GONE, directory)
        assert gone.wait(0)
        gone.terminate()
        gone.kill()
        assert gone.end_everything() == []
        worker = start(directory, "pass")
        assert worker.wait(20)
        worker.terminate()
        worker.kill()
        assert stranger.poll() is None
        assert psutil.Process(stranger.pid).is_running()
        worker.close()
    finally:
        stranger.kill()
        stranger.wait()
