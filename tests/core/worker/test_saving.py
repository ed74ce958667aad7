"""Checkpoints: rotation by what is whole, room on the disk, a failed save that costs a warning only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.worker import saving
from llmtui.core.worker.saving import Checkpoints
from tests.core.worker.small import new_run, of, preset_text, work

SAVES = "checkpoints: {save_steps: 1, save_total_limit: 2}"


def sealed(keeper: Checkpoints, step: int, content: bytes = b"weights") -> None:
    staging = keeper.stage(step)
    folder = staging / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(content)
    (folder / "training_args.bin").write_bytes(b"hf_secret")
    keeper.seal(step, "save_steps", 0.0)
    keeper.rotate(step)


@pytest.fixture
def keeper(llama: Path, data: Path) -> Checkpoints:
    directory = new_run(preset_text(llama, data))
    return Checkpoints(directory, "settings", 2, 0, lambda event: None)


def names(keeper: Checkpoints) -> set[str]:
    return {path.name for path in keeper.folder.iterdir()}


def test_the_newest_are_kept_by_their_step_whatever_the_clock_says(keeper: Checkpoints) -> None:
    for step in (1, 2, 3):
        sealed(keeper, step)
        os.utime(keeper.path_of(step), (10_000 - step, 10_000 - step))
    assert names(keeper) == {"checkpoint-2", "checkpoint-3"}


def test_what_looks_like_a_checkpoint_and_is_none_is_left_alone_and_not_counted(keeper: Checkpoints) -> None:
    for name in ("checkpoint-20-merged", "checkpoint-1", "checkpoint-old"):
        (keeper.folder / name).mkdir()
    for step in (2, 3, 4):
        sealed(keeper, step)
    assert names(keeper) == {"checkpoint-20-merged", "checkpoint-1", "checkpoint-old", "checkpoint-3", "checkpoint-4"}


def test_the_one_resumed_from_and_the_best_are_never_rotated_away(keeper: Checkpoints) -> None:
    keeper.protected = {1, 3}
    for step in range(1, 7):
        sealed(keeper, step)
    assert names(keeper) == {"checkpoint-1", "checkpoint-3", "checkpoint-5", "checkpoint-6"}


def test_nothing_is_deleted_while_the_newest_is_not_whole(keeper: Checkpoints) -> None:
    for step in (1, 2):
        sealed(keeper, step)
    keeper.stage(3)
    written = keeper.staging / "checkpoint-3"
    written.mkdir()
    (written / "model.safetensors").write_bytes(b"weights")
    keeper.seal(3, "save_steps", 0.0)
    (keeper.path_of(3) / "model.safetensors").write_bytes(b"WEIGHTS")
    keeper.rotate(3)
    assert names(keeper) == {"checkpoint-1", "checkpoint-2", "checkpoint-3"}


def test_a_whole_checkpoint_is_never_written_over(keeper: Checkpoints) -> None:
    sealed(keeper, 1, b"first")
    sealed(keeper, 1, b"second")
    assert (keeper.path_of(1) / "model.safetensors").read_bytes() == b"first"
    assert names(keeper) == {"checkpoint-1"}


def test_training_arguments_hold_a_token_and_are_not_kept(keeper: Checkpoints) -> None:
    sealed(keeper, 1)
    assert {p.name for p in keeper.path_of(1).iterdir()} == {"manifest.json", "model.safetensors"}


def test_what_a_killed_attempt_left_is_cleaned_and_nothing_else(keeper: Checkpoints) -> None:
    sealed(keeper, 1)
    for name in (".tmp-2-abc", ".trash-checkpoint-0-abc", "mine"):
        (keeper.folder / name / "inner").mkdir(parents=True)
    Checkpoints(keeper.directory, "settings", 2, 0, lambda event: None)
    assert names(keeper) == {"checkpoint-1", "mine"}


def test_too_little_room_is_noticed_before_anything_is_written(keeper: Checkpoints, monkeypatch) -> None:
    sealed(keeper, 1)
    real = saving.shutil.disk_usage(keeper.folder)
    monkeypatch.setattr(saving.shutil, "disk_usage", lambda _: real._replace(free=1 << 20))
    with pytest.raises(OSError, match="1 MiB free, a checkpoint needs"):
        keeper.stage(2)
    assert names(keeper) == {"checkpoint-1"}


def _fails_twice(error: Exception):
    calls = []
    real = torch.save

    def save(*args, **kwargs):
        calls.append(1)
        if len(calls) <= 2:
            raise error
        return real(*args, **kwargs)

    return save


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), SafetensorError("I/O error: No space left"), RuntimeError("write failed")],
    ids=lambda e: type(e).__name__,
)
def test_a_save_that_fails_costs_a_warning_and_training_goes_on(
    error: Exception, llama: Path, data: Path, monkeypatch
) -> None:
    monkeypatch.setattr(torch, "save", _fails_twice(error))
    directory = new_run(preset_text(llama, data, max_steps=4, eval_steps=None, more=SAVES))
    assert work(directory) == 0
    warnings = [w for w in of(directory, ev.WarningEvent) if w.code == "checkpoint"]
    assert len(warnings) == 2
    assert "checkpoint-1 could not be written, training goes on" in warnings[0].text
    assert [s.step for s in of(directory, ev.Step)] == [1, 2, 3, 4]
    assert find_valid(directory).step == 4
    assert not [p for p in directory.checkpoints.iterdir() if p.name.startswith(".")]
