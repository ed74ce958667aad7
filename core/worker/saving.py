"""Checkpoints written complete or not at all, rotated by what is verified; the result; free space first."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from llmtui.core.files import fsync_folder, write_atomically
from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import MANIFEST, checkpoint_folders, folder_manifest, verify
from llmtui.core.runs.directory import RunDirectory

TRAINER_FILES: Final = (
    "optimizer.pt", "scheduler.pt", "scaler.pt", "trainer_state.json", "training_args.bin", "llmtui_state.json", MANIFEST,
)  # fmt: skip
_RESERVE_BYTES: Final = 64 << 20


class Checkpoints:
    """Stages, seals and rotates the checkpoints of one run."""

    def __init__(
        self, directory: RunDirectory, settings: str, keep: int, write: Callable[[ev.EventBase], None]
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.keep = keep
        self._write = write
        self._largest = 0
        self.staging: Path | None = None
        self.protected: set[int] = set()  # steps that rotation never deletes: resumed from, best
        self.clean()

    def clean(self) -> None:
        """Remove what a killed attempt left: staged, and half-deleted checkpoints."""
        self.directory.checkpoints.mkdir(mode=0o700, exist_ok=True)
        for path in self.directory.checkpoints.iterdir():
            if path.name.startswith((".tmp-", ".trash-")):
                shutil.rmtree(path, ignore_errors=True)

    def stage(self, step: int) -> Path:
        """A fresh folder on the same disk to write a checkpoint into.

        Raises:
            OSError: there is not enough space for one as large as the last.
        """
        free = shutil.disk_usage(self.directory.checkpoints).free
        if free < self._largest + _RESERVE_BYTES:
            raise OSError(28, f"{free >> 20} MiB are free, a checkpoint takes {self._largest >> 20}")
        self.staging = self.directory.checkpoints / f".tmp-{step}-{uuid.uuid4().hex[:8]}"
        self.staging.mkdir(mode=0o700)
        return self.staging

    def drop_staged(self) -> None:
        """Forget a checkpoint that could not be written."""
        if self.staging is not None:
            shutil.rmtree(self.staging, ignore_errors=True)
            self.staging = None

    def seal(self, step: int, reason: str, began: float) -> ev.Checkpoint:
        """Manifest last, everything fsynced, renamed into place, then rotation.

        Raises:
            OSError: the disk is full or gone; nothing of the checkpoint stays.
        """
        assert self.staging is not None
        written = self.staging / f"checkpoint-{step}"
        (written / "training_args.bin").unlink(missing_ok=True)  # holds the hub token, and resuming needs none of it
        for path in written.rglob("*"):
            if path.is_file():
                _fsync_file(path)
        manifest = folder_manifest(written, run=self.directory.id, step=step, settings=self.settings)
        write_atomically(written / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        final = self.directory.checkpoints / f"checkpoint-{step}"
        if final.exists():
            if verify(final, self.directory.id) is None:  # a resumed run saves a step again: keep what is there
                self.drop_staged()
                return self._event(step, final, reason, began)
            self._trash(final)
        os.rename(written, final)
        fsync_folder(self.directory.checkpoints)
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging = None
        event = self._event(step, final, reason, began)
        self._largest = max(self._largest, event.bytes)
        return event

    def _event(self, step: int, path: Path, reason: str, began: float) -> ev.Checkpoint:
        size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
        relative = str(path.relative_to(self.directory.path))
        return ev.Checkpoint(step=step, path=relative, bytes=size, seconds=time.perf_counter() - began, reason=reason)

    def rotate(self, newest: int) -> None:
        """Keep the newest `keep` whole ones besides the protected; delete only after the newest has been verified."""
        newest_path = self.directory.checkpoints / f"checkpoint-{newest}"
        if verify(newest_path, self.directory.id) is not None:
            return
        older = [(step, path) for step, path in checkpoint_folders(self.directory.checkpoints) if step <= newest]
        kept = {step for step, _ in older[-self.keep :]} | self.protected
        for step, path in older:
            if step not in kept:
                self._trash(path)
                relative = str(path.relative_to(self.directory.path))
                self._write(ev.CheckpointRemoved(step=step, path=relative, reason="rotation"))

    def _trash(self, path: Path) -> None:
        trash = path.with_name(f".trash-{path.name}-{uuid.uuid4().hex[:8]}")
        os.rename(path, trash)
        shutil.rmtree(trash, ignore_errors=True)


def _fsync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_result(directory: RunDirectory, model: Any, tokenizer: Any, best: Path | None, step: int) -> ev.Result:
    """`adapter/` or `model/` with the tokenizer, whole or not at all.

    Args:
        best: the checkpoint to take the weights from; None takes the model as it is.
    """
    adapter = hasattr(model, "peft_config")
    target = directory.adapter if adapter else directory.model
    staging = directory.path / f".tmp-{target.name}-{uuid.uuid4().hex[:8]}"
    if best is None:
        model.save_pretrained(staging)
    else:
        shutil.copytree(best, staging, ignore=shutil.ignore_patterns(*TRAINER_FILES, "rng_state*"))
    tokenizer.save_pretrained(staging)
    (staging / "README.md").unlink(missing_ok=True)  # PEFT's empty model card
    for path in staging.rglob("*"):
        if path.is_file():
            _fsync_file(path)
    manifest = folder_manifest(staging, run=directory.id, step=step, settings="")
    digest = _digest(manifest.files)
    if target.exists():
        os.rename(target, directory.path / f".trash-{target.name}-{uuid.uuid4().hex[:8]}")
    os.rename(staging, target)
    fsync_folder(directory.path)
    for trash in directory.path.glob(f".trash-{target.name}-*"):
        shutil.rmtree(trash, ignore_errors=True)
    return ev.Result(
        path=target.name, kind="adapter" if adapter else "model", hash=digest, step=step,
        bytes=sum(f.bytes for f in manifest.files.values()), source="best" if best else "last",
    )  # fmt: skip


def _digest(files: dict[str, Any]) -> str:
    import xxhash

    state = xxhash.xxh3_128()
    for name in sorted(files):
        state.update(f"{name}\0{files[name].xxh3_128}\n".encode())
    return str(state.hexdigest())
