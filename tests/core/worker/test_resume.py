"""A killed attempt goes on where its newest whole checkpoint was, digit by digit; a save is whole or not there."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.worker import saving
from tests.core.worker.small import (
    before_call,
    curve,
    die_at_step,
    end_of,
    make_data,
    new_run,
    of,
    preset_text,
    work,
    work_apart,
)

LORA = "{r: 4, lora_alpha: 8, lora_dropout: 0.1, target_modules: [q_proj, v_proj]}"
# 20 rows, batch 3, accumulation 2: 4 steps an epoch, the last of one batch of two rows.
RAGGED = {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "max_steps": 10}
SAVES = "checkpoints: {save_steps: 2, save_total_limit: 3}"
SETUPS: dict[str, dict[str, Any]] = {
    "full": {},
    "lora": {"lora": LORA},
    "int8": {"lora": LORA, "quantization": "int8"},
    "nf4": {"lora": LORA, "quantization": "nf4"},
    "int8, checkpointed": {"lora": LORA, "quantization": "int8", "gradient_checkpointing": True},
    "grouped": {"lora": LORA, "train_sampling_strategy": "group_by_length", "gradient_checkpointing": True},
}  # fmt: skip


def preset(llama: Path, data: Path, quantization: str = "none", **more: Any) -> str:
    text = preset_text(llama, data, **{"more": SAVES, **RAGGED, **more})
    return text.replace("dataset:", f"  quantization: {quantization}\ndataset:", 1)


@pytest.mark.parametrize("setup", SETUPS)
def test_killed_in_the_middle_of_an_epoch_the_curve_is_the_same_digit_by_digit(
    setup: str, llama: Path, data: Path
) -> None:
    text = preset(llama, data, **SETUPS[setup])
    whole, broken = new_run(text, "whole"), new_run(text, "broken")
    assert work(whole) == 0
    assert end_of(work_apart(broken, die_at_step(8))) == -signal.SIGKILL
    assert find_valid(broken).step == 6
    assert work(broken) == 0
    assert curve(broken) == curve(whole)
    assert list(curve(whole)) == list(range(1, 11))
    assert of(broken, ev.Plan)[-1].from_step == 6
    assert of(broken, ev.Result)[0].hash == of(whole, ev.Result)[0].hash
    same = [(e.step, e.loss, e.accuracy) for e in of(whole, ev.Eval)]
    assert [(e.step, e.loss, e.accuracy) for e in of(broken, ev.Eval) if e.step > 6] == [e for e in same if e[0] > 6]


STAGES = {
    "before anything is written": (saving.Checkpoints, "stage"),
    "written, not sealed": (saving.Checkpoints, "seal"),
    "before fsync": (saving, "fsync_tree"),
    "before the manifest": (saving, "write_atomically"),
    "renamed, its name not fsynced": (saving, "fsync_folder"),
    "before rotation": (saving.Checkpoints, "rotate"),
    "half deleted": (saving.shutil, "rmtree"),
}


@pytest.fixture(scope="module")
def uninterrupted(llama: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The curve that every killed save has to come to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMTUI_HOME", str(tmp_path_factory.mktemp("kept")))
        whole = new_run(preset(llama, data, lora=LORA, eval_steps=None).replace("limit: 3", "limit: 1"), "whole")
        assert work(whole) == 0
        return curve(whole)


@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_any_stage_of_a_save_the_newest_whole_checkpoint_is_found(
    stage: str, llama: Path, data: Path, uninterrupted: Any
) -> None:
    owner, name = STAGES[stage]
    calls = 0

    def die(*_: Any, **__: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    text = preset(llama, data, lora=LORA, eval_steps=None).replace("limit: 3", "limit: 1")
    broken = new_run(text, "broken")
    assert end_of(work_apart(broken, lambda: before_call(owner, name, die))) == -signal.SIGKILL
    found = find_valid(broken)
    assert found.step in (2, 4, 6), found
    assert work(broken) == 0
    assert curve(broken) == uninterrupted
    left = sorted(p.name for p in broken.checkpoints.iterdir())
    assert left == ["checkpoint-10"] or left == sorted([f"checkpoint-{found.step}", "checkpoint-10"])


def test_a_broken_newest_checkpoint_is_named_and_passed_over(llama: Path, data: Path) -> None:
    directory = new_run(preset(llama, data, lora=LORA))
    assert end_of(work_apart(directory, die_at_step(9))) == -signal.SIGKILL
    file = directory.checkpoints / "checkpoint-8" / "adapter_model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    found = find_valid(directory)
    assert found.step == 6
    assert found.passed_over == ("checkpoint-8 is passed over: the content of adapter_model.safetensors has changed",)
    assert work(directory) == 0
    assert find_valid(directory).step == 10
    assert find_valid(directory, 8).step == 8, "step 8 came by again, and the broken one gave way to a whole one"


def test_a_run_with_nothing_left_to_train_only_finishes(llama: Path, data: Path) -> None:
    directory = new_run(preset(llama, data, lora=LORA))
    assert work(directory) == 0
    (first,) = of(directory, ev.Result)
    steps = len(of(directory, ev.Step))
    assert work(directory) == 0
    assert len(of(directory, ev.Step)) == steps
    assert of(directory, ev.Result)[-1].hash == first.hash
    assert of(directory, ev.Exit)[-1].step == 10


def test_a_fork_takes_the_weights_of_another_runs_checkpoint_and_starts_anew(llama: Path, data: Path) -> None:
    parent = new_run(preset(llama, data, lora=LORA))
    assert work(parent) == 0
    child = new_run(preset(llama, data, lora=LORA, max_steps=4), "child")
    assert work(child, checkpoint=str(parent.checkpoints / "checkpoint-10"), weights_only=True) == 0
    assert of(child, ev.Plan)[0].from_step == 0
    assert [s.step for s in of(child, ev.Step)] == [1, 2, 3, 4]
    assert of(child, ev.Step)[0].loss < of(parent, ev.Step)[0].loss


def test_a_fork_can_go_on_from_another_runs_checkpoint_with_its_optimizer(llama: Path, data: Path) -> None:
    parent = new_run(preset(llama, data))
    assert work(parent) == 0
    child = new_run(preset(llama, data), "child")
    assert work(child, checkpoint=str(parent.checkpoints / "checkpoint-6"), from_step=6) == 0
    assert curve(child) == {step: value for step, value in curve(parent).items() if step > 6}


def test_data_that_changed_since_the_checkpoint_is_said(llama: Path, tmp_path: Path) -> None:
    rows = make_data(tmp_path / "rows.jsonl")
    directory = new_run(preset(llama, rows))
    assert end_of(work_apart(directory, die_at_step(8))) == -signal.SIGKILL
    make_data(rows, seed=1)
    directory.preset.write_text(directory.preset.read_text().replace("weight_decay: 0.0", "weight_decay: 0.1"))
    assert work(directory) == 0
    assert [w.code for w in of(directory, ev.WarningEvent)] == ["data_changed", "preset_changed"]


def test_a_checkpoint_that_is_gone_is_one_sentence(llama: Path, data: Path) -> None:
    directory = new_run(preset(llama, data))
    assert work(directory, checkpoint="checkpoints/checkpoint-4", from_step=4) == 2
    (error,) = of(directory, ev.ErrorEvent)
    assert "checkpoint-4 cannot be continued from" in error.message
