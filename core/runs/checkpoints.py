"""Checkpoints on disk: the manifest that makes one trustworthy, verifying it, choosing the newest good one.

A checkpoint is a folder `checkpoint-N` whose `manifest.json`, written last, lists every file with its size and
xxh3-128. Without a manifest, or with one that does not fit, it is broken and passed over. No torch here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from llmtui.core.runs.directory import RunDirectory

MANIFEST: Final = "manifest.json"
PROGRESS: Final = "llmtui_state.json"
# What a checkpoint has beside the model; training_args.bin, which the Trainer writes, would hold the hub token.
TRAINING_FILES: Final = (
    "optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state*", "trainer_state.json", "training_args.bin",
    PROGRESS, MANIFEST,
)  # fmt: skip
_NAME: Final = re.compile(r"checkpoint-(\d+)")
_BLOCK_BYTES: Final = 1 << 22


class ManifestFile(msgspec.Struct, frozen=True):
    """One file of a checkpoint."""

    bytes: int
    xxh3_128: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole checkpoint consists of, and where it belongs."""

    run: str
    step: int
    settings: str
    files: dict[str, ManifestFile]


@dataclass(frozen=True, slots=True)
class Found:
    """The newest good checkpoint, and a sentence for each newer one that was passed over."""

    path: Path | None
    step: int | None
    passed_over: tuple[str, ...] = ()


def file_hash(path: Path) -> str:
    """xxh3-128 of a file's bytes, hexadecimal."""
    import xxhash

    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            state.update(block)
    return str(state.hexdigest())


def folder_manifest(folder: Path, *, run: str, step: int, settings: str) -> Manifest:
    """The manifest of a folder's files as they are now."""
    files = {
        str(path.relative_to(folder)): ManifestFile(path.stat().st_size, file_hash(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    return Manifest(run=run, step=step, settings=settings, files=files)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest; None when there is none or it is damaged."""
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def manifest_bytes(folder: Path) -> int:
    """Bytes of a checkpoint's files by its manifest; 0 without one."""
    manifest = read_manifest(folder)
    return sum(file.bytes for file in manifest.files.values()) if manifest is not None else 0


def glance(folder: Path, run: str | None = None) -> str | None:
    """What is wrong with a checkpoint by names and sizes alone, in a few words; None when nothing is.

    Args:
        run: the run it must belong to; None accepts any.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return "it has no readable manifest, so it was not finished"
    match = _NAME.fullmatch(folder.name)
    if match is None or int(match[1]) != manifest.step:
        return f"its manifest is of step {manifest.step}"
    if run is not None and manifest.run != run:
        return f"it belongs to run {manifest.run}"
    for name, expected in manifest.files.items():
        try:
            size = (folder / name).stat().st_size
        except OSError:
            return f"{name} is missing"
        if size != expected.bytes:
            return f"{name} has {size} bytes instead of {expected.bytes}"
    return None


def verify(folder: Path, run: str | None = None) -> str | None:
    """What is wrong with a checkpoint, every byte read; None when it is whole.

    Args:
        run: the run it must belong to; None accepts any.
    """
    problem = glance(folder, run)
    manifest = read_manifest(folder)
    if problem is not None or manifest is None:
        return problem
    for name, expected in manifest.files.items():
        try:
            if file_hash(folder / name) != expected.xxh3_128:
                return f"the content of {name} has changed"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


def checkpoint_folders(folder: Path) -> list[tuple[int, Path]]:
    """`checkpoint-N` folders by step, oldest first; other names are not checkpoints."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return []
    found = [(int(m[1]), p) for p in entries if (m := _NAME.fullmatch(p.name)) and p.is_dir() and not p.is_symlink()]
    return sorted(found)


def find_valid(directory: RunDirectory, step: int | None = None) -> Found:
    """The newest whole checkpoint of a run, or the whole one of exactly `step`."""
    passed: list[str] = []
    for number, path in reversed(checkpoint_folders(directory.checkpoints)):
        if step is not None and number != step:
            continue
        problem = verify(path, directory.id)
        if problem is None:
            return Found(path, number, tuple(passed))
        passed.append(f"{path.name} is passed over: {problem}")
    return Found(None, None, tuple(passed))
