"""The whole path from the preset's data to token sets, with everything counted that happened on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.rows import Example, to_examples
from llmtui.core.data.sources import read_records
from llmtui.core.data.split import split_indices
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokens import IGNORED, Counts, TokenSet, encode_batch, finish_rows, special_tokens
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset

_BATCH: Final = 1000
Progress = Callable[[str, int, int | None], None]


@dataclass
class Prepared:
    """Token sets ready to train on, and the counts behind them."""

    train: TokenSet
    val: TokenSet | None
    rows_read: int
    dropped: dict[str, int]
    rows_cut: int
    data_hash: str
    warnings: list[str] = field(default_factory=list)


def prepare(
    preset: Preset, tokenizer: Any, *, base_folder: Path, max_positions: int | None, on_progress: Progress
) -> Prepared:
    """Read, split, render and tokenise.

    Args:
        base_folder: what relative paths are relative to.
        max_positions: the model's longest sequence; None when it has no limit.
        on_progress: called with phase, done, total.

    Raises:
        DataError: anything that cannot be trained on, with place and cure.
        MachineError: a hub that cannot be reached or refuses.
    """
    dataset = preset.dataset
    _check_length(dataset.max_length, max_positions)
    on_progress("loading_dataset", 0, None)
    records, notes = read_records(dataset.name_or_path or "", base_folder, dataset.config, dataset.split)
    if dataset.shuffle:
        records = [records[i] for i in _shuffled(len(records), preset.training.seed)]
    if dataset.limit is not None:
        records = records[: dataset.limit]
    examples, dropped = to_examples(records, dataset.columns)
    on_progress("loading_dataset", len(records), len(records))
    train, val = split_indices(len(examples), float(dataset.val_size), preset.training.seed)
    counts = Counts(dropped=dropped)
    work = _Tokenizing(preset, tokenizer, base_folder, counts, on_progress, len(train) + len(val))
    train_set = work.run([examples[i] for i in train])
    val_set = work.run([examples[i] for i in val]) if val else None
    _refuse_nothing(train_set, counts, len(train), preset)
    if val_set is not None and not len(val_set):
        notes.append("no validation row is left after dropping, so nothing is evaluated")
        val_set = None
    if counts.cut:
        notes.append(f"{counts.cut} rows are cut at {dataset.max_length} tokens; a cut row has no end token")
    return Prepared(train_set, val_set, len(records), counts.dropped, counts.cut, _hash(train_set, val_set), notes)


def _check_length(max_length: int, max_positions: int | None) -> None:
    if max_positions is not None and max_length > max_positions:
        raise DataError(
            f"dataset.max_length is {max_length} and the model has {max_positions} positions",
            place="dataset.max_length", hint=f"use at most {max_positions}",
        )  # fmt: skip


def _shuffled(rows: int, seed: int) -> list[int]:
    import numpy

    order: list[int] = numpy.random.default_rng(seed).permutation(rows).tolist()
    return order


class _Tokenizing:
    """Renders and tokenises rows in batches, with progress over both sides of the split."""

    def __init__(
        self, preset: Preset, tokenizer: Any, base_folder: Path, counts: Counts, on_progress: Progress, total: int
    ) -> None:
        self.dataset = preset.dataset
        self.tokenizer = tokenizer
        self.render = renderer(
            preset.dataset.template, tokenizer, base_folder, masked=preset.dataset.train_on == "response"
        )
        self.special = special_tokens(tokenizer)
        self.counts = counts
        self.on_progress = on_progress
        self.done, self.total = 0, total

    def run(self, examples: Sequence[Example | None]) -> TokenSet:
        """Tokenise one side of the split."""
        rows = TokenSet()
        for begin in range(0, len(examples), _BATCH):
            batch = examples[begin : begin + _BATCH]
            self._batch([example for example in batch if example is not None], rows)
            self.done += len(batch)
            self.on_progress("tokenizing", self.done, self.total)
        return rows

    def _batch(self, examples: Sequence[Example], rows: TokenSet) -> None:
        rendered = [self.render(example) for example in examples]
        masked = self.dataset.train_on == "response"
        encoded = encode_batch(self.tokenizer, rendered, masked)
        for item, (plain, trained) in zip(rendered, encoded, strict=True):
            max_length, on_long = self.dataset.max_length, self.dataset.on_long
            for piece in finish_rows(plain, trained, item, self.special, max_length, on_long, self.counts):
                learned = zip(piece.ids, piece.trained, strict=True)
                rows.append(piece.ids, [token if learn else IGNORED for token, learn in learned])


def _refuse_nothing(train: TokenSet, counts: Counts, rows: int, preset: Preset) -> None:
    if len(train):
        return
    reasons = ", ".join(f"{reason}: {count}" for reason, count in counts.dropped.items())
    hint = "check the data's columns"
    if "no trained token" in counts.dropped or "too long" in counts.dropped:
        hint = f"raise dataset.max_length ({preset.dataset.max_length}): prompts are longer than that"
    raise DataError(f"0 of {rows} rows can be trained on ({reasons})", place="dataset", hint=hint)


def _hash(train: TokenSet, val: TokenSet | None) -> str:
    import xxhash

    state = xxhash.xxh3_128()
    for rows in (train, val):
        for part in rows.bytes() if rows is not None else (b"",):
            state.update(part)
    return str(state.hexdigest())
