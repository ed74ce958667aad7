"""Starting: detached from every terminal, one wins, and whatever cannot work is one sentence."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from llmtui.core.errors import DataError, LlmtuiError, MachineError, RefusedError
from llmtui.core.home import runs_folder
from llmtui.core.preset import load_preset
from llmtui.core.process import launch, spawning
from llmtui.core.process.interrupting import StartedAnyway, interrupts_held
from llmtui.core.process.stop import stop
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from tests.core.process.runs import ROOT, ended, new_run, spawn, supervisor_pid, until_step, worker_pid

STARTER = (
    "import sys; from pathlib import Path; from llmtui.core.process import spawning\n"
    "from llmtui.core.runs.directory import RunDirectory\n"
    "spawning.MODULE = 'tests.core.process.supervise_stand_in'\n"
    "spawning.spawn_supervisor(RunDirectory(Path(sys.argv[1])))\n"
    "print('started', flush=True)\n"
    "import time; time.sleep(600)\n"
)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that the product starts have the stand-in worker."""
    monkeypatch.setattr(spawning, "MODULE", "tests.core.process.supervise_stand_in")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("STAND_IN", "until_stop")


@pytest.mark.parametrize("end", ["close the pty", "kill -9", "hang up"])
def test_a_terminal_that_goes_changes_nothing(stand_in: None, end: str) -> None:
    directory = new_run()
    terminal, master = pty.fork()
    if terminal == 0:
        os.execv(sys.executable, [sys.executable, "-c", STARTER, str(directory.path)])
    assert b"started" in os.read(master, 100)
    until_step(directory, 2)
    for pid in (supervisor_pid(directory), worker_pid(directory)):
        process = psutil.Process(pid)
        assert process.terminal() is None
        assert os.getsid(pid) != os.getsid(terminal)
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
        assert not {"/dev/pts", "pipe:"} & {str(fd.readlink().parent) for fd in Path(f"/proc/{pid}/fd").glob("[12]")}
    if end == "hang up":
        os.kill(terminal, signal.SIGHUP)
    elif end == "kill -9":
        os.kill(terminal, signal.SIGKILL)
    os.close(master)
    os.waitpid(terminal, 0)
    before = read_state(directory).step
    until_step(directory, before + 5)
    assert read_state(directory).liveness.supervisor
    stop(directory)
    assert ended(directory).state == "stopped"


def test_the_supervisor_is_no_child_of_the_terminal_and_stands_in_its_own_folder() -> None:
    directory = spawn(new_run(), "until_stop")
    supervisor = psutil.Process(supervisor_pid(directory))
    assert supervisor.ppid() != os.getpid()
    assert Path(supervisor.cwd()) == directory.path
    assert str(directory.path) in supervisor.cmdline()
    stop(directory, "kill")
    ended(directory)


def test_a_file_of_the_users_does_not_stand_in_for_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("json", "psutil", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    directory = spawn(new_run(), "steps:1 finish")
    assert ended(directory).state == "finished"


def test_the_failure_to_start_is_known_at_once_and_in_words(stand_in: None) -> None:
    directory = new_run()
    with (
        locks.take(directory.supervisor_lock),
        pytest.raises(RefusedError, match=r"another process holds supervisor\.lock"),
    ):
        spawning.spawn_supervisor(directory)
    directory.preset.write_text("model: [\n")
    with pytest.raises(LlmtuiError, match=r"preset\.yaml"):
        spawning.spawn_supervisor(directory)
    with pytest.raises(MachineError):
        spawning.spawn_supervisor(RunDirectory(runs_folder() / "nowhere"))


def test_two_resumes_at_once_give_one_run_and_one_sentence(stand_in: None) -> None:
    directory = spawn(new_run(), "exit:2")
    ended(directory)
    resume = (
        "import sys; from pathlib import Path; from llmtui.core.errors import LlmtuiError\n"
        "from llmtui.core.process import launch, spawning; from llmtui.core.runs.directory import RunDirectory\n"
        "spawning.MODULE = 'tests.core.process.supervise_stand_in'\n"
        "try: launch.resume_run(RunDirectory(Path(sys.argv[1])))\n"
        "except LlmtuiError as error: print(error); sys.exit(error.exit_code)\n"
    )
    command = [sys.executable, "-c", resume, str(directory.path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 5], said
    until_step(directory, 2)
    stop(directory)
    state = ended(directory)
    assert (state.state, state.attempt) == ("stopped", 2)


def test_resuming_what_lives_or_has_finished_is_refused(stand_in: None) -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 1)
    with pytest.raises(RefusedError, match="is running"):
        launch.resume_run(directory)
    stop(directory)
    ended(directory)
    finished = spawn(new_run(), "finish")
    ended(finished)
    with pytest.raises(RefusedError, match="nothing is left to train"):
        launch.resume_run(finished)
    with pytest.raises(RefusedError, match="nothing is left to train"):  # and behind a resume that looked too early
        finished.summary_json.write_text("{}")
        spawning.spawn_supervisor(finished)


def test_a_full_disk_is_refused_before_anything_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_preset("demo")
    usage = SimpleNamespace(total=1 << 40, used=0, free=50 << 20)
    monkeypatch.setattr("llmtui.core.process.launch.shutil.disk_usage", lambda _: usage)
    with pytest.raises(MachineError, match="only 50 MiB are free") as refused:
        launch.start_run(loaded)
    assert "LLMTUI_HOME" in refused.value.hint
    assert list(runs_folder().iterdir()) == []


def test_a_disk_too_small_for_the_checkpoints_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    large = load_preset("opencalm-7b-dolly-ja", ["lora=null", "model.quantization=none"])
    usage = SimpleNamespace(total=1 << 40, used=0, free=20 << 30)
    monkeypatch.setattr("llmtui.core.process.launch.shutil.disk_usage", lambda _: usage)
    with pytest.raises(MachineError, match="two checkpoints and the result take about"):
        launch.check_disk(large.preset, large.folder)


def test_a_gpu_that_is_not_here_is_refused_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(MachineError, match="the preset asks for GPU 0, which is not here") as refused:
        launch.start_run(load_preset("demo", ["gpu_split.gpus=[0]"]))
    assert "none for the CPU" in refused.value.hint
    assert list(runs_folder().iterdir()) == []


def test_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="there is no folder"):
        launch.start_run(load_preset("demo", ["model.name_or_path=./no/such/model"]))


@pytest.mark.parametrize(
    ("name", "said", "cure"),
    [
        ("{model}/config.json", "is no folder", "name the folder that it is in"),
        ("/dev/null", "/dev/null is no folder", "name the folder"),
        ("https://huggingface.co/cyberagent/open-calm-7b", "is an address", "hub id: cyberagent/open-calm-7b"),
        ("https://huggingface.co/x/y/tree/main", "is an address", "hub id: x/y"),
        ("hf://", "is an address", "hub id: owner/model"),
    ],
)
def test_a_model_that_is_no_model_is_named_with_its_cure(name: str, said: str, cure: str) -> None:
    folder = load_preset("demo").folder / "demo" / "model"
    with pytest.raises(DataError, match=said) as refused:
        launch.start_run(load_preset("demo", [f"model.name_or_path={name.format(model=folder)}"]))
    assert cure in refused.value.hint


def test_a_living_run_keeps_its_name(stand_in: None) -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 1)
    with pytest.raises(RefusedError, match='a run named "small" is going on'):
        launch.start_run(load_preset("demo"), name="small")
    stop(directory)
    ended(directory)


def test_an_interrupt_while_a_run_starts_is_told_when_it_has(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = launch.spawn_supervisor

    def interrupted(directory: RunDirectory) -> None:
        signal.raise_signal(signal.SIGINT)
        real(directory)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(launch, "spawn_supervisor", interrupted)
    with pytest.raises(StartedAnyway) as told:
        launch.start_run(load_preset("demo", ["gpu_split.gpus=none"]))
    directory = told.value.directory
    assert read_state(directory).liveness.supervisor
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    stop(directory, "kill")
    ended(directory)
    with pytest.raises(StartedAnyway):
        launch.resume_run(directory)
    stop(directory, "kill")
    ended(directory)


def test_an_interrupt_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held() as came:
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert came == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_before_a_run_starts_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "check_start", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt) as told:
        launch.start_run(load_preset("demo", ["gpu_split.gpus=none"]), name="mine")
    assert not isinstance(told.value, StartedAnyway)
    assert list(runs_folder().iterdir()) == []


def test_of_two_at_once_with_one_name_one_wins(stand_in: None) -> None:
    started, refused, begin = [], [], threading.Barrier(2)

    def start() -> None:
        loaded = load_preset("demo", ["gpu_split.gpus=none"])
        begin.wait()
        try:
            started.append(launch.start_run(loaded, name="twin"))
        except RefusedError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for directory in started:
        stop(directory, "kill")
        ended(directory)
    assert len(started) == len(refused) == 1
    assert 'a run named "twin" is going on' in refused[0]


def test_the_last_run_with_a_result_is_meant_by_run(stand_in: None) -> None:
    with pytest.raises(RefusedError, match='there is no run "demo"') as refused:
        launch.finished_run("demo")
    assert "llmtui run demo" in refused.value.hint
    first, second = new_run(), new_run()
    with pytest.raises(RefusedError, match="has no result yet"):
        launch.finished_run("small")
    first.model.mkdir()
    assert launch.finished_run("small") == launch.finished_run("last") == first
    second.adapter.mkdir()
    assert launch.finished_run("small") == second
