"""The supervisor: names how a run ended, restarts what may be restarted, stops for certain, outlives nobody's terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from llmtui.core.errors import RefusedError
from llmtui.core.home import runs_folder
from llmtui.core.process import launch
from llmtui.core.process.adopting import adopt_orphans, orphans
from llmtui.core.process.causes import last_line, name_cause, signal_name
from llmtui.core.process.stop import checkpoint, stop, wait_until_ended
from llmtui.core.process.worker_process import bound_output, worker_environment
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState

PRESET = "model: {name_or_path: x/y}\ndataset: {name_or_path: x/z}\ngpu_split: {gpus: none}\nlimits: {restarts: 2}\n"
RUN = (
    "import sys; from pathlib import Path\n"
    "import llmtui.core.process.supervise as s; from llmtui.core.runs import locks\n"
    "from llmtui.core.runs.directory import RunDirectory\n"
    "d = RunDirectory(Path(sys.argv[1]))\n"
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "lock = locks.take(d.supervisor_lock)\n"
    "def command(d, n): return [sys.executable, '-m', 'tests.core.process.scripted', str(d.path), str(n), sys.argv[2]]\n"
    "s._STOP_NOW_LIMIT = 1.5\n"
    "sys.exit(s.Supervisor(d, command, first_pause=0.2).run())\n"
)
ROOT = Path(__file__).parents[3]


def make(preset: str = PRESET) -> RunDirectory:
    return create_run(
        runs_folder(), preset, name="demo", preset_name="demo", task="finetune", description="", command=[]
    )


def supervise(directory: RunDirectory, script: str) -> subprocess.Popen[bytes]:
    """A supervisor with a scripted worker, detached as the real one."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(directory.path), script], start_new_session=True, env=environment, cwd=ROOT,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def until(condition: Callable[[], Any], what: str, limit: float = 30.0) -> Any:
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return value


def ended(script: str, preset: str = PRESET) -> tuple[RunState, RunDirectory, int]:
    directory = make(preset)
    process = supervise(directory, script)
    code = process.wait(60)
    return read_state(directory), directory, code


def states(directory: RunDirectory) -> list[ev.StateEvent]:
    return [e for e in EventReader(directory.monitor).read_new() if isinstance(e, ev.StateEvent)]


@pytest.mark.parametrize(
    ("script", "state", "code", "words"),
    [
        ("steps:3 finish", "finished", 0, ""),
        ("steps:3 error:data", "failed", 2, "row 3: it cannot be"),
        ("exit:3", "failed", 1, "boom [x]"),
        ("steps:1 signal:6", "interrupted", 4, "SIGABRT (signal 6)"),
        ("steps:1 signal:11", "interrupted", 4, "SIGSEGV (signal 11)"),
    ],
)
def test_the_cause_of_the_end_is_named(script: str, state: str, code: int, words: str) -> None:
    got, directory, returned = ended(script, PRESET.replace("restarts: 2", "restarts: 0"))
    assert (got.state, got.exit_code, returned) == (state, code, code)
    assert words in got.cause
    assert not got.alive
    if state == "interrupted":
        assert f"llmtui resume {directory.id}" in got.hint


def test_a_crash_is_restarted_and_says_so() -> None:
    got, directory, _ = ended("steps:2 once:signal:9 finish")
    assert got.state == "finished"
    assert got.attempt == 2
    assert any("restart 1 of 2" in s.cause for s in states(directory))


def test_a_crash_that_repeats_is_given_up_and_a_mistake_is_not_repeated() -> None:
    got, directory, _ = ended("signal:9")
    assert got.state == "interrupted"
    assert len([e for e in EventReader(directory.monitor).read_new() if isinstance(e, ev.Attempt)]) == 3
    _, directory, _ = ended("error:data")
    assert len([e for e in EventReader(directory.monitor).read_new() if isinstance(e, ev.Attempt)]) == 1
    _, directory, _ = ended("signal:9", PRESET + "checkpoints: {resume: never}\n")
    assert len([e for e in EventReader(directory.monitor).read_new() if isinstance(e, ev.Attempt)]) == 1


def test_a_stop_is_obeyed_by_the_worker_and_ends_with_every_process_gone() -> None:
    directory = make()
    process = supervise(directory, "until_stop")
    until(lambda: read_state(directory).step > 2, "steps")
    stop(directory)
    state = wait_until_ended(directory, 30)
    assert (state.state, state.exit_code, process.wait()) == ("stopped", 4, 4)
    with pytest.raises(RefusedError, match="not running"):
        stop(directory)
    with pytest.raises(RefusedError, match="not running"):
        checkpoint(directory)


def test_a_kill_is_at_once_and_takes_the_workers_children_along() -> None:
    directory = make()
    process = supervise(directory, "child hang")
    until(lambda: len(_of(directory)) >= 3, "the worker's child")
    stop(directory, "kill")
    state = wait_until_ended(directory, 20)
    process.wait(20)
    assert (state.state, state.exit_code) == ("stopped", 4)
    assert "killed on request" in state.cause
    until(lambda: not _of(directory), "the end of every process", 5)


def test_a_worker_that_does_not_stop_in_time_is_killed_and_it_is_said() -> None:
    directory = make()
    process = supervise(directory, "steps:2 hang")
    until(lambda: read_state(directory).step == 2, "steps")
    stop(directory, "now")
    state = wait_until_ended(directory, 30)
    process.wait(20)
    assert "did not stop within" in state.cause


def _of(directory: RunDirectory) -> list[psutil.Process]:
    """Processes that carry the run's id in their arguments."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(directory.id in word for word in words):
            found.append(process)
    return found


def test_a_killed_supervisor_is_seen_as_an_orphan_and_the_worker_goes_on() -> None:
    directory = make()
    process = supervise(directory, "until_stop")
    until(lambda: read_state(directory).step > 2, "steps")
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not locks.is_held(directory.supervisor_lock), "a free lock")
    assert orphans(runs_folder()) == [directory]
    state = read_state(directory)
    assert (state.state, state.liveness.worker) == ("running", True)
    assert "adopted by the next llmtui command" in state.cause
    assert adopt_orphans(runs_folder()) == [directory]
    until(lambda: locks.is_held(directory.supervisor_lock), "an adopting supervisor")
    assert adopt_orphans(runs_folder()) == []
    stop(directory)
    state = wait_until_ended(directory, 60)
    assert state.state == "stopped"
    assert any("adopted" in s.cause for s in states(directory))


def test_hang_ups_do_not_reach_the_run() -> None:
    """The terminal that started it closes: neither supervisor nor worker notices."""
    directory = make()
    pid, master = pty.fork()
    if pid == 0:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(directory.path), "until_stop"], start_new_session=True, env=environment,
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(60)
        os._exit(0)
    until(lambda: read_state(directory).step > 2, "steps")
    os.close(master)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    before = read_state(directory).step
    until(lambda: read_state(directory).step > before + 5, "further steps")
    stop(directory)
    assert wait_until_ended(directory, 30).state == "stopped"


def test_output_is_kept_at_both_ends_only() -> None:
    path = runs_folder() / "output.log"
    path.write_bytes(b"HEAD" + b"x" * 50_000 + b"TAIL")
    bound_output(path, keep=10_000)
    data = path.read_bytes()
    assert data.startswith(b"HEAD")
    assert data.endswith(b"TAIL")
    assert len(data) < 11_000
    assert b"output cut here" in data


def test_a_workers_cards_are_named_by_uuid_before_torch_is_imported() -> None:
    environment = worker_environment(["GPU-a", "GPU-b"], {"PATH": "/bin"})
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert worker_environment([], {})["CUDA_VISIBLE_DEVICES"] == ""


def test_the_kernels_memory_killer_is_named(tmp_path: Path) -> None:
    output = tmp_path / "output.log"
    output.write_bytes(b"one\rtwo\x1b[31m\n\n")
    cause = name_cause("r", -9, None, None, oom=True, killed_by_us="", output=output)
    assert "OOM killer" in cause.text
    assert cause.kind == "host_memory"
    assert last_line(output) == "two\\x1b[31m"
    assert signal_name(9) == "SIGKILL (signal 9)"
    assert signal_name(64).startswith("SIG") or signal_name(64) == "signal 64"


def test_resuming_what_lives_or_has_finished_is_refused() -> None:
    directory = make()
    process = supervise(directory, "until_stop")
    until(lambda: read_state(directory).step > 2, "steps")
    with pytest.raises(RefusedError, match="is running"):
        launch.resume_run(directory)
    stop(directory)
    process.wait(30)
    _, finished, _ = ended("finish")
    with pytest.raises(RefusedError, match="nothing is left to train"):
        launch.resume_run(finished)


def test_the_supervisor_is_small_and_quiet() -> None:
    directory = make()
    process = supervise(directory, "steps:1 hang")
    until(lambda: read_state(directory).step == 1, "a step")
    watched = psutil.Process(process.pid)
    before, begin = watched.cpu_times(), time.monotonic()
    time.sleep(4)  # what is measured is time itself
    after = watched.cpu_times()
    share = (after.user + after.system - before.user - before.system) / (time.monotonic() - begin)
    assert watched.memory_info().rss < 60 << 20
    assert share < 0.05  # the budget of 0.5 % is measured over minutes in bench/
    stop(directory, "kill")
    wait_until_ended(directory, 20)
    process.wait(20)
