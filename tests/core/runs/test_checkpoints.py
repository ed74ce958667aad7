"""A checkpoint is trusted by its manifest: every kind of damage is named, the newest whole one is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from llmtui.core.runs.checkpoints import MANIFEST, find_valid, folder_manifest, glance, manifest_bytes, verify
from llmtui.core.runs.directory import RunDirectory


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "20260101-000000-demo")
    for step in (2, 4, 10):
        make(directory.checkpoints / f"checkpoint-{step}", directory.id, step)
    return directory


def make(folder: Path, run_id: str, step: int) -> None:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    (folder / "optimizer.pt").write_bytes(b"moments" * 100)
    manifest = folder_manifest(folder, run=run_id, step=step, settings="s")
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)


def zero_tail(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-200] + bytes(200))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda f: (f / MANIFEST).unlink(), "no readable manifest"),
    "torn manifest": (lambda f: (f / MANIFEST).write_bytes((f / MANIFEST).read_bytes()[:-9]), "no readable manifest"),
    "manifest of another shape": (lambda f: (f / MANIFEST).write_text("[1]"), "no readable manifest"),
    "file missing": (lambda f: (f / "optimizer.pt").unlink(), "optimizer.pt is missing"),
    "file cut": (lambda f: (f / "optimizer.pt").write_bytes(b"x"), "optimizer.pt has 1 bytes instead of 700"),
    "file empty": (lambda f: (f / "optimizer.pt").write_bytes(b""), "has 0 bytes"),
    "bit flipped": (lambda f: flip(f / "model.safetensors"), "content of model.safetensors has changed"),
    "tail of zeros": (lambda f: zero_tail(f / "model.safetensors"), "content of model.safetensors has changed"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_the_one_before_is_taken(kind: str, run: RunDirectory) -> None:
    damage, words = DAMAGE[kind]
    newest = run.checkpoints / "checkpoint-10"
    damage(newest)
    assert words in (verify(newest, run.id) or "")
    found = find_valid(run)
    assert (found.path, found.step) == (run.checkpoints / "checkpoint-4", 4)
    assert len(found.passed_over) == 1
    assert words in found.passed_over[0]


def test_the_newest_is_by_step_as_a_number(run: RunDirectory) -> None:
    found = find_valid(run)
    assert (found.step, found.passed_over) == (10, ())
    assert manifest_bytes(run.checkpoints / "checkpoint-10") == 1400


def test_a_folder_of_another_run_or_another_step_is_not_taken(run: RunDirectory) -> None:
    shutil.rmtree(run.checkpoints / "checkpoint-10")
    make(run.checkpoints / "checkpoint-10", "20260101-000000-other", 10)
    shutil.copytree(run.checkpoints / "checkpoint-4", run.checkpoints / "checkpoint-20")
    found = find_valid(run)
    assert found.step == 4
    assert found.passed_over == (
        "checkpoint-20 is passed over: its manifest is of step 4",
        "checkpoint-10 is passed over: it belongs to run 20260101-000000-other",
    )
    assert verify(run.checkpoints / "checkpoint-10") is None, "a fork takes a parent's"


def test_names_that_only_look_alike_are_no_checkpoints(run: RunDirectory) -> None:
    for name in ("checkpoint-99-merged", ".tmp-99-abc", ".trash-checkpoint-99-abc", "checkpoint-"):
        (run.checkpoints / name).mkdir()
    (run.checkpoints / "checkpoint-98").write_text("a file")
    (run.checkpoints / "checkpoint-97").symlink_to(run.checkpoints / "checkpoint-4")
    found = find_valid(run)
    assert (found.step, found.passed_over) == (10, ())


def test_one_step_can_be_asked_for(run: RunDirectory) -> None:
    assert find_valid(run, 4).step == 4
    assert find_valid(run, 5).path is None
    flip(run.checkpoints / "checkpoint-4" / "model.safetensors")
    found = find_valid(run, 4)
    assert found.path is None
    assert "has changed" in found.passed_over[0]


def test_a_glance_reads_no_content(run: RunDirectory) -> None:
    flip(run.checkpoints / "checkpoint-4" / "model.safetensors")
    assert glance(run.checkpoints / "checkpoint-4", run.id) is None


def test_a_run_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert find_valid(RunDirectory(tmp_path / "nothing")).path is None


def test_looking_for_a_checkpoint_needs_no_torch() -> None:
    code = "import sys, llmtui.core.runs.checkpoints; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
