"""Stop, stop now, checkpoint now, SIGTERM: obeyed at the end of a step, while evaluating, while loading."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.locks import is_held
from llmtui.core.runs.log import EventReader, EventWriter
from llmtui.core.worker.session import Session
from llmtui.core.worker.steps import StepLog
from tests.core.worker.small import curve, end_of, new_run, of, preset_text, wait_for, work, work_apart

LORA = "{r: 4, lora_alpha: 8, lora_dropout: 0.1, target_modules: [q_proj, v_proj]}"


def test_a_gap_that_a_full_disk_leaves_in_the_record_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_run(preset_text(tmp_path, tmp_path))
    session = Session(directory, 1)
    step = ev.Step(step=1, epoch=0.1, loss=1.0, learning_rate=0.1)
    with monkeypatch.context() as full:
        full.setattr(EventWriter, "write", lambda *_: os.write(os.open("/dev/full", os.O_WRONLY), b"x"))
        session.write(step)
        session.write(step)
    session.write(step)
    session.write(step)
    session.close()
    told = [event for event in EventReader(directory.events).read_new() if isinstance(event, ev.WarningEvent)]
    assert [event.code for event in told] == ["events"]
    assert "2 events could not be written (No space left on device)" in told[0].text


def ask_at_step(monkeypatch: pytest.MonkeyPatch, directory: RunDirectory, step: int, kind: Any) -> None:
    """A terminal's request arrives while this step is computed."""
    real = StepLog.end_step

    def end_step(self: StepLog, number: int, *rest: Any) -> None:
        if number == step:
            requests.send(directory, kind, 1)
        real(self, number, *rest)

    monkeypatch.setattr(StepLog, "end_step", end_step)


def ask_in_phase(monkeypatch: pytest.MonkeyPatch, directory: RunDirectory, phase: str, kind: Any) -> None:
    real, asked = Session.phase, []

    def in_phase(self: Session, name: Any, *rest: Any, **more: Any) -> None:
        if name == phase and self.something_to_save and not asked:
            asked.append(requests.send(directory, kind, 1))
        real(self, name, *rest, **more)

    monkeypatch.setattr(Session, "phase", in_phase)


def test_stop_saves_and_the_rest_of_the_curve_is_the_same(llama: Path, data: Path, monkeypatch) -> None:
    whole = new_run(preset_text(llama, data, lora=LORA), "whole")
    assert work(whole) == 0
    directory = new_run(preset_text(llama, data, lora=LORA))
    with monkeypatch.context() as patch:
        ask_at_step(patch, directory, 2, "stop")
        assert work(directory) == 4
    (exit_,), (answer,), (checkpoint,) = of(directory, ev.Exit), of(directory, ev.Answer), of(directory, ev.Checkpoint)
    assert (exit_.outcome, exit_.step) == ("stopped", 2)
    assert (answer.request, answer.accepted) == ("stop", True)
    assert (checkpoint.step, checkpoint.reason) == (2, "request")
    assert not list(directory.requests.iterdir())
    assert not directory.adapter.exists()
    assert work(directory) == 0
    assert curve(directory) == curve(whole)


def test_stop_now_saves_nothing(llama: Path, data: Path, monkeypatch) -> None:
    directory = new_run(preset_text(llama, data, more="checkpoints: {save_steps: 2}"))
    ask_at_step(monkeypatch, directory, 4, "stop_now")
    assert work(directory) == 4
    assert of(directory, ev.Step)[-1].step == 4
    assert find_valid(directory).step == 2
    assert of(directory, ev.Answer)[0].accepted
    assert "without a checkpoint" in of(directory, ev.Exit)[0].cause


def test_checkpoint_now_saves_and_goes_on(llama: Path, data: Path, monkeypatch) -> None:
    directory = new_run(preset_text(llama, data))
    ask_at_step(monkeypatch, directory, 2, "checkpoint")
    assert work(directory) == 0
    assert [c.step for c in of(directory, ev.Checkpoint)] == [2, 6]
    (answer,) = of(directory, ev.Answer)
    assert (answer.request, answer.accepted, answer.text) == ("checkpoint", True, "saved checkpoints/checkpoint-2")


def test_a_request_for_another_attempt_is_not_replayed(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data))
    requests.send(directory, "stop", 7)
    assert work(directory) == 0
    assert not of(directory, ev.Answer)


def test_a_stop_cuts_an_evaluation_short_and_it_is_made_up_for(llama: Path, data: Path, monkeypatch) -> None:
    text = preset_text(llama, data, lora=LORA, per_device_eval_batch_size=1)
    whole = new_run(text, "whole")
    assert work(whole) == 0
    directory = new_run(text)
    with monkeypatch.context() as patch:
        ask_in_phase(patch, directory, "evaluating", "stop")
        assert work(directory) == 4
    assert not of(directory, ev.Eval)
    assert find_valid(directory).step == 3
    assert work(directory) == 0
    assert curve(directory) == curve(whole)
    assert [(e.step, e.loss) for e in of(directory, ev.Eval)] == [(e.step, e.loss) for e in of(whole, ev.Eval)]


def test_a_stop_that_cannot_be_saved_is_refused_so_that_no_work_is_lost(llama: Path, data: Path, monkeypatch) -> None:
    from llmtui.core.worker import saving

    directory = new_run(preset_text(llama, data, eval_steps=None))
    ask_at_step(monkeypatch, directory, 2, "stop")
    real = saving.shutil.disk_usage(directory.path)
    full = iter([real._replace(free=0)])
    monkeypatch.setattr(saving.shutil, "disk_usage", lambda _: next(full, real))
    assert work(directory) == 0
    (answer,) = of(directory, ev.Answer)
    assert not answer.accepted
    assert "could not be written" in answer.text
    assert of(directory, ev.Step)[-1].step == 6


def _stuck(phase: str):
    """Loading that takes minutes inside one call."""

    def prepare() -> None:
        from llmtui.core.worker import loading

        setattr(loading, phase, lambda *_, **__: time.sleep(600))

    return prepare


@pytest.mark.parametrize("how", ["stop", "stop_now", "SIGTERM"])
def test_a_stop_while_loading_ends_it_within_a_second(how: str, llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data))
    pid = work_apart(directory, _stuck("load_model"), listen=True)
    wait_for(lambda: any(p.text == "weights" for p in of(directory, ev.PhaseEvent)), "loading of the weights")
    asked = time.monotonic()
    if how == "SIGTERM":
        os.kill(pid, signal.SIGTERM)
    else:
        requests.send(directory, how, 1)
    assert end_of(pid) == 4
    assert time.monotonic() - asked < 2
    (exit_,) = of(directory, ev.Exit)
    assert (exit_.outcome, exit_.step) == ("stopped", 0)
    assert of(directory, ev.Answer)[0].accepted


def test_hang_ups_and_interrupts_change_nothing_and_sigterm_saves_once(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, max_steps=100000, eval_steps=None, lr_scheduler_type="constant"))
    pid = work_apart(directory, lambda: None, listen=True)
    wait_for(lambda: of(directory, ev.Step), "the first step")
    for number in (signal.SIGHUP, signal.SIGINT):
        os.kill(pid, number)
    seen = of(directory, ev.Step)[-1].step
    wait_for(lambda: of(directory, ev.Step)[-1].step > seen + 1, "steps after SIGHUP and SIGINT")
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGTERM)
    assert end_of(pid) == 4
    (exit_,), checkpoints = of(directory, ev.Exit), of(directory, ev.Checkpoint)
    assert exit_.outcome == "stopped"
    assert [c.step for c in checkpoints] == [exit_.step]
    assert find_valid(directory).step == exit_.step


def test_a_checkpoint_request_while_loading_is_refused_and_loading_goes_on(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, max_steps=1))
    requests.send(directory, "checkpoint", 1)
    assert work(directory) == 0
    (answer,) = of(directory, ev.Answer)
    assert (answer.accepted, answer.text) == (False, "there is nothing to save yet")


def test_looking_for_requests_costs_one_stat_when_there_are_none(llama: Path, data: Path, monkeypatch) -> None:
    directory = new_run(preset_text(llama, data))
    session = Session(directory, 1)
    assert session.pending() == []
    monkeypatch.setattr(requests, "pending", lambda *_: pytest.fail("the folder has not changed"))
    assert session.pending() == []
    session.close()


def test_nobody_holds_the_worker_lock_after_a_run(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, max_steps=1))
    assert work(directory) == 0
    assert not is_held(directory.worker_lock)
