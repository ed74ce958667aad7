"""Nothing trains on nothing: a loss of exactly 0, or none at all, from the start fails the run with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from llmtui.core.errors import DataError
from llmtui.core.runs import events as ev
from llmtui.core.worker.failures import NanLossError
from llmtui.core.worker.judging import judge_losses
from llmtui.core.worker.steps import StepLog
from tests.core.worker.small import error_of, make_model, new_run, of, preset_text, work

NAN = float("nan")


def log_of(*losses: float, trained_tokens: int = 9) -> StepLog:
    log = StepLog(lambda _: None, torch.device("cpu"), 100)
    for step, loss in enumerate(losses, 1):
        log.add_loss(torch.tensor(loss))
        log.end_step(step, 0.1, 10, trained_tokens)
    return log


def judge(log: StepLog, *, learned_before: bool = False, ended: bool = False, go_on: bool = False) -> None:
    judge_losses(log, learned_before=learned_before, ended=ended, go_on=go_on)


def test_three_first_losses_of_exactly_zero_are_enough() -> None:
    judge(log_of(0.0, 0.0))
    with pytest.raises(DataError, match="exactly 0 from the first step") as caught:
        judge(log_of(0.0, 0.0, 0.0))
    assert "train_on" in caught.value.hint
    with pytest.raises(DataError) as caught:
        judge(log_of(0.0, 0.0, 0.0, trained_tokens=0))
    assert "max_length" in caught.value.hint


def test_a_run_of_one_step_is_judged_at_its_end() -> None:
    with pytest.raises(DataError):
        judge(log_of(0.0), ended=True)
    judge(log_of(0.0, 1e-9), ended=True)


def test_a_loss_that_has_come_down_to_zero_is_a_good_one() -> None:
    judge(log_of(2.0, 0.0, 0.0, 0.0, 0.0), ended=True)
    judge(log_of(0.0, 0.0, 0.0, 0.0), learned_before=True, ended=True)


def test_going_on_over_bad_losses_ends_where_there_is_no_good_one() -> None:
    judge(log_of(*[NAN] * 9), go_on=True)
    judge(log_of(2.0, *[NAN] * 20), go_on=True, ended=True)
    for log, ended in ((log_of(*[NAN] * 10), False), (log_of(NAN, NAN), True)):
        with pytest.raises(NanLossError, match="nothing is learned"):
            judge(log, go_on=True, ended=ended)


@pytest.fixture
def sure(tmp_path: Path) -> Path:
    """A model that is sure of one token, whatever comes before: the one of the letter z."""
    folder = make_model(tmp_path / "sure")
    model = AutoModelForCausalLM.from_pretrained(folder)
    z = AutoTokenizer.from_pretrained(folder)("z")["input_ids"][0]
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(0.0 if name.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")) else 1.0)
        model.lm_head.weight[z] = 10.0
    model.save_pretrained(folder)
    return folder


def rows_of_z(folder: Path, more: str) -> str:
    """A preset over rows of which the model is sure; they are cut, so that no end token is left to be learned."""
    data = folder / "z.jsonl"
    data.write_text((json.dumps({"text": "z" * 40}) + "\n") * 12)
    text = preset_text(folder, data, more=more)
    return text.replace("template: rinna", "template: text").replace("max_length: 128", "max_length: 8")


def test_a_loss_of_exactly_zero_fails_the_run_and_so_does_going_on_with_it(sure: Path) -> None:
    directory = new_run(rows_of_z(sure, "checkpoints: {save_steps: 1}"))
    assert work(directory) == 2
    assert (error_of(directory).kind, error_of(directory).place) == ("data", "dataset")
    assert "exactly 0" in error_of(directory).message
    assert [step.loss for step in of(directory, ev.Step)] == [0.0, 0.0, 0.0]
    assert work(directory) == 2, "two checkpoints were written before it was sure; they make nothing better"
    assert [e.outcome for e in of(directory, ev.Exit)] == ["failed", "failed"]
    assert not of(directory, ev.Result)


def test_a_loss_that_is_no_number_from_the_start_is_the_bases_fault(llama: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    model = AutoModelForCausalLM.from_pretrained(llama)
    with torch.no_grad():
        model.lm_head.weight[5, 5] = NAN
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(llama).save_pretrained(folder)
    directory = new_run(preset_text(folder, data))
    assert work(directory) == 1
    error = error_of(directory)
    assert error.kind == "nan_loss"
    assert "from the first step" in error.message
    assert "model.dtype" in error.hint
    assert not of(directory, ev.Checkpoint)
    directory = new_run(preset_text(folder, data, on_nan="continue"), name="on")
    assert work(directory) == 1
    assert "any step" in error_of(directory).message
    assert not of(directory, ev.Result)
