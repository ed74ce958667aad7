"""A supervisor on a box with four unequal cards: it waits its turn, claims, tells the worker by UUID, sees cards vanish."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from llmtui.core.hardware import nvml
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.process import cards, queue, supervise
from llmtui.core.process.supervise import Supervisor
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.attempt import read_attempt
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from tests.core.hardware.fake_nvml import GIB, FakeNvml
from tests.core.process.runs import ROOT, monitor, new_run, until, warnings


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(supervise, "write_summary", lambda _: "")
    monkeypatch.setattr(nvml, "_pids_are_the_hosts", lambda: True)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")


def supervise_with(directory: RunDirectory, fake: FakeNvml, script: str) -> Supervisor:
    def command(of: RunDirectory, attempt: int) -> list[str]:
        return [sys.executable, "-m", "tests.core.process.stand_in", str(of.path), str(attempt), script]

    return Supervisor(directory, command, first_pause=0.1, nvml=NvmlReader(fake))


def run(directory: RunDirectory, fake: FakeNvml, script: str) -> int:
    with locks.take(directory.supervisor_lock):
        return supervise_with(directory, fake, script).run()


@pytest.mark.parametrize(
    ("gpus", "setting", "given"),
    [
        ("auto", None, "GPU-2"),
        ("auto", "1,3", "GPU-1"),
        ([3], None, "GPU-3"),
        (["GPU-0"], None, "GPU-0"),
        ("none", None, ""),
    ],
)
def test_the_worker_gets_the_cards_of_the_preset_by_uuid(
    monkeypatch: pytest.MonkeyPatch, gpus: object, setting: str | None, given: str
) -> None:
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    fake = FakeNvml()
    fake.used = dict.fromkeys(range(4), GIB // 2)
    directory = new_run(gpu_split={"gpus": gpus})
    assert run(directory, fake, "cards steps:1 finish") == 0
    assert f"cards PCI_BUS_ID {given}\n" in directory.output.read_text()
    info = read_attempt(directory, 1)
    assert [gpu.uuid for gpu in info.gpus] == ([given] if given else [])
    assert info.driver == "580.95"
    assert monitor(directory, ev.Attempt)[0].gpus == ([given] if given else [])
    state = read_state(directory)
    assert state.state == "finished"
    if given:  # bars of the run's own card only
        assert {gpu.uuid for sample in monitor(directory, ev.Hardware) for gpu in sample.gpus} <= {given}
        assert not cards.is_claimed(ev.HardwareGpu(index=0, uuid=given))


def test_a_run_waits_while_another_has_its_card_and_says_so() -> None:
    taken = cards.claim(ev.HardwareGpu(index=1, uuid="GPU-1"))
    assert taken is not None
    directory = new_run(gpu_split={"gpus": [1]})
    thread = threading.Thread(target=run, args=(directory, FakeNvml(), "steps:1 finish"))
    thread.start()
    until(lambda: read_state(directory).state == "queued", "the queue")
    assert read_state(directory).cause == "waiting for GPU 1: other runs have it"
    taken.release()
    thread.join(30)
    assert [s.state for s in monitor(directory, ev.StateEvent)] == ["starting", "queued", "running", "finished"]


def test_a_stop_takes_a_waiting_run_out_of_the_queue() -> None:
    taken = cards.claim(ev.HardwareGpu(index=1, uuid="GPU-1"))
    assert taken is not None
    directory = new_run(gpu_split={"gpus": [1]})
    thread = threading.Thread(target=run, args=(directory, FakeNvml(), "steps:1 finish"))
    thread.start()
    until(lambda: read_state(directory).state == "queued", "the queue")
    requests.send(directory, "stop", 0)
    thread.join(30)
    state = read_state(directory)
    assert (state.state, state.exit_code, state.attempt) == ("stopped", 4, 0)
    assert f"llmtui resume {directory.id}" in state.hint


def test_a_run_that_shares_does_not_wait() -> None:
    taken = cards.claim(ev.HardwareGpu(index=1, uuid="GPU-1"))
    assert taken is not None
    directory = new_run(gpu_split={"gpus": [1], "share": True})
    assert run(directory, FakeNvml(), "steps:1 finish") == 0
    assert [gpu.uuid for gpu in read_attempt(directory, 1).gpus] == ["GPU-1"]


def test_a_claims_folder_that_cannot_be_used_costs_a_warning_and_not_the_run() -> None:
    cards.CLAIMS.write_text("no folder")
    directory = new_run(gpu_split={"gpus": [1]})
    assert run(directory, FakeNvml(), "steps:1 finish") == 0
    assert "cannot be claimed" in warnings(directory)["claims"]


def test_strangers_memory_on_the_card_is_said() -> None:
    directory = new_run(gpu_split={"gpus": [3]})
    run(directory, FakeNvml(), "steps:1 finish")
    assert "GPU 3 has 4096 of 16384 MiB in use by others" in warnings(directory)["gpu_shared"]


def test_a_card_that_vanishes_is_named_as_the_cause() -> None:
    fake = FakeNvml(lost=2)
    directory = new_run(gpu_split={"gpus": [2]})
    fake.polls[2] = -4  # some looks before the worker starts
    _let_go_when_it_is_lost(directory)
    assert run(directory, fake, "steps:1 wait:go error:python") == 1
    state = read_state(directory)
    assert (state.state, state.cause_kind) == ("failed", "driver")
    assert "GPU 2 (NVIDIA H200 [x]) fell off the bus" in state.cause
    assert "Xid" in warnings(directory)["gpu_lost"]


def _let_go_when_it_is_lost(directory: RunDirectory) -> None:
    """Let the worker fail once the loss of the card has been seen."""

    def wait() -> None:
        until(lambda: "gpu_lost" in warnings(directory), "the warning")
        (directory.path / "go").touch()

    threading.Thread(target=wait, daemon=True).start()


def test_a_card_that_the_preset_names_and_the_box_lacks_fails_the_run_with_a_cure() -> None:
    directory = new_run(gpu_split={"gpus": [7]})
    assert run(directory, FakeNvml(), "finish") == 3
    state = read_state(directory)
    assert (state.state, state.cause_kind, state.exit_code) == ("failed", "machine", 3)
    assert "GPU 7, which is not here: there is 0 (NVIDIA GeForce RTX 3090)" in state.cause
    assert "none for the CPU" in state.hint
