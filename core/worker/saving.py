"""Checkpoints written complete or not at all, and rotated by what is whole; free space first."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from llmtui.core.cached import fsync_tree
from llmtui.core.files import fsync_folder, write_atomically
from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import (
    MANIFEST,
    checkpoint_folders,
    folder_manifest,
    glance,
    manifest_bytes,
    verify,
)
from llmtui.core.runs.directory import RunDirectory

_RESERVE_BYTES: Final = 64 << 20  # for the log, the events and the neighbours


class Checkpoints:
    """Stages, seals and rotates the checkpoints of one run.

    Args:
        settings: a hash of the preset, kept in the manifest.
        keep: how many to keep besides the protected.
        expected_bytes: what the first one will take; later ones are expected to be as large as the largest before.
        write: where events go.
    """

    def __init__(
        self, directory: RunDirectory, settings: str, keep: int, expected_bytes: int,
        write: Callable[[ev.EventBase], None],
    ) -> None:  # fmt: skip
        self.directory = directory
        self.folder = directory.checkpoints
        self.settings = settings
        self.keep = keep
        self._write = write
        self.staging: Path | None = None
        self.protected: set[int] = set()
        """Steps that rotation never deletes: the one resumed from, the best."""
        self._clean()
        sizes = [manifest_bytes(path) for _, path in checkpoint_folders(self.folder)]
        self._expected = max([*sizes, 0]) or expected_bytes

    def _clean(self) -> None:
        """Remove what a killed attempt left: staged, and half-deleted checkpoints."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for path in self.folder.iterdir():
            if path.name.startswith((".tmp-", ".trash-")):
                shutil.rmtree(path, ignore_errors=True)

    def path_of(self, step: int) -> Path:
        """Where a step's checkpoint is or would be."""
        return self.folder / f"checkpoint-{step}"

    def stage(self, step: int) -> Path:
        """A fresh folder on the same disk to write a checkpoint into.

        Raises:
            OSError: there is not enough space for one as large as the last.
        """
        free = shutil.disk_usage(self.folder).free
        if free < self._expected + _RESERVE_BYTES:
            need = (self._expected + _RESERVE_BYTES) >> 20
            raise OSError(28, f"the disk has {free >> 20} MiB free, a checkpoint needs {need}")
        self.staging = self.folder / f".tmp-{step}-{uuid.uuid4().hex[:8]}"
        self.staging.mkdir(mode=0o700)
        return self.staging

    def drop_staged(self) -> None:
        """Forget a checkpoint that could not be written."""
        if self.staging is not None:
            shutil.rmtree(self.staging, ignore_errors=True)
            self.staging = None

    def seal(self, step: int, reason: str, began: float) -> ev.Checkpoint:
        """Everything fsynced, manifest last, renamed into place, the name fsynced.

        Raises:
            OSError: the disk is full or gone; what was staged is still to be dropped.
        """
        assert self.staging is not None
        written, final = self.staging / f"checkpoint-{step}", self.path_of(step)
        (written / "training_args.bin").unlink(missing_ok=True)  # holds the hub token, and resuming needs none of it
        if final.exists() and verify(final, self.directory.id) is None:
            self.drop_staged()  # a whole checkpoint is never written over
            return self._event(step, final, reason, began)
        fsync_tree(written)
        manifest = folder_manifest(written, run=self.directory.id, step=step, settings=self.settings)
        write_atomically(written / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        if final.exists():
            self._trash(final)
        written.rename(final)
        fsync_folder(self.folder)
        self.drop_staged()
        event = self._event(step, final, reason, began)
        self._expected = max(self._expected, event.bytes)
        return event

    def _event(self, step: int, path: Path, reason: str, began: float) -> ev.Checkpoint:
        relative = str(path.relative_to(self.directory.path))
        seconds = time.perf_counter() - began
        return ev.Checkpoint(step=step, path=relative, bytes=manifest_bytes(path), seconds=seconds, reason=reason)

    def rotate(self, newest: int) -> None:
        """Keep the newest `keep` whole ones besides the protected.

        Nothing is deleted before the newest has been verified; broken ones do not count and are left for a person.
        """
        run = self.directory.id
        older = [(s, p) for s, p in checkpoint_folders(self.folder) if s < newest and glance(p, run) is None]
        kept = {step for step, _ in older[len(older) - self.keep + 1 :]} | self.protected
        leaving = [(step, path) for step, path in older if step not in kept]
        if not leaving or verify(self.path_of(newest), run) is not None:
            return
        for step, path in leaving:
            self._trash(path)
            relative = str(path.relative_to(self.directory.path))
            self._write(ev.CheckpointRemoved(step=step, path=relative, reason="rotation"))

    def _trash(self, path: Path) -> None:
        trash = path.with_name(f".trash-{path.name}-{uuid.uuid4().hex[:8]}")
        path.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)


def expected_checkpoint_bytes(model: Any) -> int:
    """About what a checkpoint takes: trained weights and AdamW's two moments; a full model's buffers are small."""
    return sum(p.numel() * (p.element_size() + 8) for p in model.parameters() if p.requires_grad)
