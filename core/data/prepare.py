"""The whole path from the preset's data to rows of tokens, made once and kept under what they were made from."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmtui.core.cached import cached_folder
from llmtui.core.data.answers import Answers
from llmtui.core.data.made import Meta, damaged, read_meta, write_meta
from llmtui.core.data.making import Making, Progress, refuse_nothing
from llmtui.core.data.pieces import token_pieces
from llmtui.core.data.token_store import StoredTokens, TokenStore, TokenWriter
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset


@dataclass
class Prepared:
    """Rows ready to train on, and the counts behind them."""

    train: StoredTokens
    val: StoredTokens | None
    rows_read: int
    dropped: dict[str, int]
    rows_cut: int
    data_hash: str
    warnings: list[str] = field(default_factory=list)
    train_answers: Answers | None = None
    """Where the answers of the training rows begin, when `dataset.label` is set."""
    answers: Answers | None = None
    """The same of the validation rows."""
    folder: Path = Path()
    """Where it is kept."""
    meta: Meta = field(default_factory=Meta)


def prepare(
    preset: Preset, tokenizer: Any, *, base_folder: Path, max_positions: int | None, on_progress: Progress,
    key: str | None = None,
) -> Prepared:  # fmt: skip
    """Read, clean, split, render and tokenise, or take what was made before.

    Args:
        base_folder: what relative paths are relative to.
        max_positions: the model's longest sequence; None when it has no limit.
        on_progress: called with phase, done, total.
        key: `cache_key` of everything it is made from; None keeps it only as long as it is used.

    Raises:
        DataError: anything that cannot be trained on, with place and cure.
        MachineError: a hub that cannot be reached or refuses.
    """
    check_length(preset.dataset.max_length, max_positions)

    def make(folder: Path) -> None:
        _make(folder, preset, tokenizer, base_folder, on_progress)

    if key is None:
        folder = Path(tempfile.mkdtemp(prefix="llmtui-tokens-"))
        try:
            make(folder)
            prepared = open_prepared(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(prepared, shutil.rmtree, folder, ignore_errors=True)
        return prepared
    found = find_prepared(key)
    if found is not None:
        on_progress("tokenizing", len(found.train), len(found.train))
        return found
    return open_prepared(cached_folder(key, make, lambda: on_progress("tokenizing", 0, None)))


def find_prepared(key: str) -> Prepared | None:
    """What was made under this key before. What is torn or damaged is put away, to be made again."""
    from llmtui.core.home import cache_folder

    folder = cache_folder() / key
    if not folder.is_dir():
        return None
    if damaged(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return open_prepared(folder)


def open_prepared(folder: Path) -> Prepared:
    """A made folder, open for reading."""
    import numpy

    meta, store = read_meta(folder), TokenStore(folder)
    train = StoredTokens(store, numpy.load(folder / "train.npy", allow_pickle=False))
    val = StoredTokens(store, numpy.load(folder / "val.npy", allow_pickle=False)) if meta.val else None
    labels = meta.labels
    return Prepared(
        train, val, meta.rows_read, meta.dropped, meta.rows_cut, meta.data_hash, list(meta.notes),
        train.answers(labels) if labels is not None else None,
        val.answers(labels) if labels is not None and val is not None else None, folder, meta,
    )  # fmt: skip


def check_length(max_length: int, max_positions: int | None) -> None:
    """Refuse rows longer than the model's positions."""
    if max_positions is not None and max_length > max_positions:
        raise DataError(
            f"dataset.max_length is {max_length} and the model has {max_positions} positions",
            place="dataset.max_length", hint=f"use at most {max_positions}",
        )  # fmt: skip


def _make(folder: Path, preset: Preset, tokenizer: Any, base_folder: Path, on_progress: Progress) -> None:
    import numpy

    writer = TokenWriter(folder)
    try:
        made = Making(preset, tokenizer, base_folder, writer, on_progress).make()
        refuse_nothing(made.train, made.counts, made.rows_read, preset)
    finally:
        writer.close()
    notes, counts = made.notes, made.counts
    if made.val is not None and not len(made.val):
        notes.append("no validation row is left after dropping, so nothing is evaluated")
        made.val = None
    numpy.save(folder / "lengths.npy", numpy.frombuffer(counts.lengths, dtype=numpy.int32))
    numpy.save(folder / "train.npy", made.train)
    numpy.save(folder / "val.npy", numpy.arange(0) if made.val is None else made.val)
    store = TokenStore(folder)
    train = StoredTokens(store, made.train)
    val = StoredTokens(store, made.val) if made.val is not None else None
    notes += counts.sentences(preset.dataset.max_length)
    write_meta(folder, Meta(
        rows_read=made.rows_read, dropped=counts.dropped, rows_cut=counts.cut, rows_split=counts.split,
        sources=made.sources, cleaned=made.cleaned, notes=notes, labels=made.labels, train=len(train),
        val=len(val) if val is not None else 0, data_hash=_hash(train, val), made=time.time(),
        tokenizer=type(tokenizer).__name__, pad_id=int(tokenizer.pad_token_id or 0),
    ), token_pieces(tokenizer, writer.used))  # fmt: skip


def _hash(train: StoredTokens, val: StoredTokens | None) -> str:
    import xxhash

    state = xxhash.xxh3_128(train.content())
    state.update(b"val")
    if val is not None:
        state.update(val.content())
    return str(state.hexdigest())
