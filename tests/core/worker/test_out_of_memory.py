"""Out of GPU memory: smaller micro-batches, the same effective batch, the same gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer

from llmtui.core.runs import events as ev
from llmtui.core.worker import evaluation
from tests.core.worker.small import curve, error_of, new_run, of, preset_text, work

RAGGED = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_steps": 4, "eval_steps": None}


class TightMemory:
    """A GPU's memory: micro-steps of more than `rows` rows fail, in the backward pass, after some gradients exist."""

    def __init__(self, rows: int, monkeypatch: pytest.MonkeyPatch, from_call: int = 0) -> None:
        self.rows, self.calls, self.from_call = rows, 0, from_call
        self.seen: list[int] = []
        real = Trainer.training_step

        def training_step(trainer: Any, model: Any, inputs: Any, items: Any = None) -> torch.Tensor:
            self.calls += 1
            count = inputs["input_ids"].shape[0]
            if count > self.rows and self.calls > self.from_call:
                real(trainer, model, inputs, items)  # leaves gradients behind that must not count
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            self.seen.append(count)
            return real(trainer, model, inputs, items)

        monkeypatch.setattr(Trainer, "training_step", training_step)


def weights(directory: Any) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(directory.model / "model.safetensors")


@pytest.mark.parametrize("from_call", [0, 1, 2])
def test_the_step_is_split_and_the_curve_stays(from_call: int, llama: Path, data: Path, monkeypatch) -> None:
    """It fails in the first, in the second micro-step of a group, and in a later group."""
    whole, tight = new_run(preset_text(llama, data, **RAGGED), "whole"), new_run(preset_text(llama, data, **RAGGED))
    assert work(whole) == 0
    with monkeypatch.context() as patch:
        memory = TightMemory(1, patch, from_call)
        assert work(tight) == 0
    got, expected = curve(tight), curve(whole)
    assert list(got) == [1, 2, 3, 4]
    for step, (loss, rate, tokens, trained) in expected.items():
        assert got[step][0] == pytest.approx(loss, rel=2e-5)
        assert got[step][1:] == (rate, tokens, trained)
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(tight)[name], value, rtol=1e-3, atol=1e-4)
    sizes = of(tight, ev.BatchSize)
    assert [s.per_device_train_batch_size for s in sizes] == [2, 1], "halved twice, then never again"
    assert {s.effective_batch for s in sizes} == {8}
    assert "CUDA out of memory" in sizes[0].cause
    assert of(tight, ev.Plan)[0].effective_batch == 8
    assert set(memory.seen[from_call:]) == {1}


def test_split_gradients_equal_whole_ones(llama: Path, data: Path, monkeypatch) -> None:
    grads: dict[str, dict[str, torch.Tensor]] = {}
    from llmtui.core.worker.finetune import Finetune

    real = Finetune.on_pre_optimizer_step
    for name, rows in (("whole", 99), ("split", 2)):
        with monkeypatch.context() as patch:
            TightMemory(rows, patch)

            def keep(self: Finetune, name: str = name) -> None:
                grads[name] = {n: p.grad.clone() for n, p in self.trainer.model.named_parameters()}
                real(self)

            patch.setattr(Finetune, "on_pre_optimizer_step", keep)
            assert work(new_run(preset_text(llama, data, **RAGGED | {"max_steps": 1}), name)) == 0
    for name, value in grads["whole"].items():
        torch.testing.assert_close(grads["split"][name], value, rtol=1e-4, atol=2e-7)


def test_the_smaller_batch_is_remembered_by_the_next_attempt(llama: Path, data: Path, monkeypatch) -> None:
    text = preset_text(llama, data, **RAGGED, more="checkpoints: {save_steps: 2}")
    directory = new_run(text)
    memory = TightMemory(2, monkeypatch)
    assert work(directory) == 0
    del memory.seen[:]
    assert work(directory, checkpoint="checkpoints/checkpoint-2", from_step=2) == 0
    assert len(of(directory, ev.BatchSize)) == 1
    assert set(memory.seen) <= {1, 2}


def test_an_attempt_can_be_told_to_begin_smaller(llama: Path, data: Path, monkeypatch) -> None:
    memory = TightMemory(2, monkeypatch)
    directory = new_run(preset_text(llama, data, **RAGGED))
    assert work(directory, per_device_train_batch_size=2) == 0
    assert not of(directory, ev.BatchSize)
    assert max(memory.seen) == 2


def test_one_row_that_does_not_fit_is_named_with_a_cure(llama: Path, data: Path, monkeypatch) -> None:
    TightMemory(0, monkeypatch)
    directory = new_run(preset_text(llama, data, **RAGGED))
    assert work(directory) == 1
    error = error_of(directory)
    assert (error.kind, error.exit_code) == ("gpu_memory", 1)
    assert "one row" in error.message
    assert "max_length" in error.hint


def test_without_auto_batch_size_the_run_fails_and_says_why(llama: Path, data: Path, monkeypatch) -> None:
    TightMemory(2, monkeypatch)
    directory = new_run(preset_text(llama, data, auto_batch_size=False, **RAGGED))
    assert work(directory) == 1
    assert error_of(directory).kind == "gpu_memory"


def test_another_error_is_not_taken_for_memory(llama: Path, data: Path, monkeypatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("shape mismatch [x]")

    monkeypatch.setattr(Trainer, "training_step", broken)
    directory = new_run(preset_text(llama, data))
    assert work(directory) == 1
    assert (error_of(directory).kind, error_of(directory).message) == ("python", "RuntimeError: shape mismatch [x]")


def test_an_evaluation_that_does_not_fit_takes_smaller_batches(llama: Path, data: Path, monkeypatch) -> None:
    real = evaluation._batch

    def tight(model: Any, features: Any, *rest: Any) -> Any:
        if len(features) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(model, features, *rest)

    whole, directory = new_run(preset_text(llama, data), "whole"), new_run(preset_text(llama, data))
    assert work(whole) == 0
    monkeypatch.setattr(evaluation, "_batch", tight)
    assert work(directory) == 0
    for got, expected in zip(of(directory, ev.Eval), of(whole, ev.Eval), strict=True):
        assert got.loss == pytest.approx(expected.loss, rel=1e-6)
        assert (got.accuracy, got.rows, got.tokens) == (expected.accuracy, expected.rows, expected.tokens)
