"""A fork takes a whole checkpoint over without costing disk or touching its parent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.preset import parse_preset
from llmtui.core.process import forking
from llmtui.core.process.forking import checkpoint_to_fork, state_does_not_fit, take_over
from llmtui.core.process.starting import describe_attempt, read_fork
from llmtui.core.runs.checkpoints import Found, folder_manifest, verify
from llmtui.core.runs.directory import RunDirectory
from tests.core.process.runs import new_run


def with_checkpoint(directory: RunDirectory, step: int) -> Path:
    folder = directory.checkpoints / f"checkpoint-{step}"
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(os.urandom(1000))
    (folder / "sub" / "state.json").write_text(json.dumps({"step": step}))
    manifest = folder_manifest(folder, run=directory.id, step=step, settings="s")
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    return folder


def test_the_checkpoint_is_taken_over_and_outlives_its_parent() -> None:
    parent, child = new_run(), new_run()
    with_checkpoint(parent, 10)
    newest = with_checkpoint(parent, 20)
    assert checkpoint_to_fork(parent, None) == (newest, 20)
    path, step = checkpoint_to_fork(parent, 10)
    loaded = parse_preset(parent.preset.read_text(), parent.preset, ["training.num_train_epochs=5"])
    take_over(parent, child, path, step, loaded)
    fork = read_fork(child)
    assert fork is not None
    assert (fork.step, fork.weights_only) == (10, False)
    copy = Path(fork.checkpoint)
    assert (copy / "model.safetensors").stat().st_ino == (path / "model.safetensors").stat().st_ino  # costs no disk
    for file in path.rglob("*"):
        if file.is_file():
            file.unlink()
    assert verify(copy, parent.id) is None
    info = describe_attempt(child, 1, Found(None, None), [], None)
    assert (info.checkpoint, info.from_step) == (fork.checkpoint, 10)


def test_where_links_are_not_possible_the_checkpoint_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(forking.os, "link", no_links)
    parent, child = new_run(), new_run()
    path = with_checkpoint(parent, 10)
    take_over(parent, child, path, 10, parse_preset(parent.preset.read_text(), parent.preset))
    fork = read_fork(child)
    assert fork is not None
    assert verify(Path(fork.checkpoint), parent.id) is None


def test_a_broken_or_missing_checkpoint_is_refused_with_its_reason() -> None:
    parent = new_run()
    with pytest.raises(RefusedError, match="has no whole checkpoint"):
        checkpoint_to_fork(parent, None)
    folder = with_checkpoint(parent, 10)
    (folder / "model.safetensors").write_bytes(b"short")
    with pytest.raises(RefusedError, match=r"has no checkpoint of step 10 \(checkpoint-10 is passed over"):
        checkpoint_to_fork(parent, 10)


def test_a_checkpoint_that_vanishes_meanwhile_is_a_sentence() -> None:
    parent, child = new_run(), new_run()
    with pytest.raises(MachineError, match="cannot be copied"):
        take_over(parent, child, parent.checkpoints / "checkpoint-9", 9, parse_preset(parent.preset.read_text()))


@pytest.mark.parametrize(
    ("change", "weights_only"),
    [("training.num_train_epochs=9", False), ("training.eval_steps=7", False), ("checkpoints.save_steps=5", False),
     ("training.learning_rate=1e-5", True), ("training.seed=1", True), ("lora.r=4", True),
     ("dataset.max_length=99", True), ("training.gradient_accumulation_steps=4", True)],
)  # fmt: skip
def test_the_optimizers_state_is_taken_only_where_it_fits(change: str, weights_only: bool) -> None:
    text = new_run(lora={"r": 8}).preset.read_text()
    assert state_does_not_fit(parse_preset(text).preset, parse_preset(text, None, [change]).preset) is weights_only
