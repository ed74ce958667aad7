"""The whole path from the preset's data to token sets, with everything counted that happened on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.answers import Answers
from llmtui.core.data.cleaning import Cleaner
from llmtui.core.data.content import content_hash
from llmtui.core.data.labels import Labels
from llmtui.core.data.parsing import Record
from llmtui.core.data.rows import Example, to_examples
from llmtui.core.data.sources import read_records
from llmtui.core.data.split import split_rows, without_copies
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokenizer_notes import tokenizer_notes
from llmtui.core.data.tokens import IGNORED, Counts, TokenSet, encode_batch, finish_rows, special_tokens
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.preset.paths import is_split_name

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
    train_answers: Answers | None = None
    """Where the answers of the training rows begin, when `dataset.label` is set."""
    answers: Answers | None = None
    """The same of the validation rows."""


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
    on_progress("loading_dataset", len(records), len(records))
    counts = Counts()
    labels = Labels(dataset.label) if dataset.label is not None else None
    examples = _cleaned(records, preset, labels, counts, notes)
    train, val = _sides(examples, preset, base_folder, labels, counts, notes)
    work = _Tokenizing(preset, tokenizer, base_folder, counts, on_progress, len(train) + len(val))
    train_answers = Answers(labels.names) if labels is not None else None
    answers = Answers(labels.names) if labels is not None and val else None
    train_set = work.run(train, train_answers)
    val_set = work.run(val, answers) if val else None
    _refuse_nothing(train_set, counts, len(train), preset)
    if val_set is not None and not len(val_set):
        notes.append("no validation row is left after dropping, so nothing is evaluated")
        val_set = answers = None
    notes += counts.sentences(dataset.max_length)
    notes += tokenizer_notes(dataset.template, tokenizer, base_folder)
    data_hash = _hash(train_set, val_set)
    return Prepared(
        train_set, val_set, len(records), counts.dropped, counts.cut, data_hash, notes, train_answers, answers
    )


def _check_length(max_length: int, max_positions: int | None) -> None:
    if max_positions is not None and max_length > max_positions:
        raise DataError(
            f"dataset.max_length is {max_length} and the model has {max_positions} positions",
            place="dataset.max_length", hint=f"use at most {max_positions}",
        )  # fmt: skip


def _cleaned(
    records: Sequence[Record], preset: Preset, labels: Labels | None, counts: Counts, notes: list[str]
) -> list[Example]:
    examples, dropped = to_examples(records, preset.dataset.columns, labels)
    cleaner = Cleaner(preset.dataset.clean)
    cleaned = [cleaner.clean(example) for example in examples if example is not None]
    for reasons in (dropped, cleaner.dropped):
        for reason, count in reasons.items():
            counts.dropped[reason] = counts.dropped.get(reason, 0) + count
    notes += [f"clean.{step} changed {count} rows" for step, count in cleaner.counts.items()]
    return [example for example in cleaned if isinstance(example, Example)]


def _sides(
    examples: list[Example], preset: Preset, base_folder: Path, labels: Labels | None, counts: Counts, notes: list[str]
) -> tuple[list[Example], list[Example]]:
    """Training and validation rows; what copies did to the split is noted."""
    dataset = preset.dataset
    hashes = b"".join(content_hash(example) for example in examples)
    if dataset.val is None:
        split = split_rows(hashes, float(dataset.val_size) if examples else 0, preset.training.seed)
        if split.moved:
            notes.append(f"{split.moved} rows changed sides, so that no copy of a row stands on both")
            if not len(split.val):
                notes.append("no row can be held out: each has more copies than dataset.val_size has room for")
        return [examples[i] for i in split.train], [examples[i] for i in split.val]
    records, said = _val_records(dataset.val, preset, base_folder)
    notes += said
    val = _cleaned(records, preset, labels, counts, notes)
    kept = without_copies(hashes, b"".join(content_hash(example) for example in val))
    if len(kept) < len(examples):
        counts.dropped["also a validation row"] = len(examples) - len(kept)
    return [examples[i] for i in kept], val


def _val_records(val: str, preset: Preset, base_folder: Path) -> tuple[list[Record], list[str]]:
    dataset = preset.dataset
    if is_split_name(val):
        return read_records(dataset.name_or_path or "", base_folder, dataset.config, val)
    return read_records(val, base_folder, None, "train")


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
        self.everything = preset.dataset.train_on == "everything"
        # A labelled row is answered when it is evaluated, so where its answer begins is needed in any case.
        self.masked = not self.everything or preset.dataset.label is not None
        self.render = renderer(preset.dataset.template, tokenizer, base_folder, masked=self.masked)
        self.special = special_tokens(tokenizer)
        self.counts = counts
        self.on_progress = on_progress
        self.done, self.total = 0, total

    def run(self, examples: Sequence[Example], answers: Answers | None = None) -> TokenSet:
        """Tokenise one side of the split; where its answers begin goes into `answers`."""
        rows = TokenSet()
        for begin in range(0, len(examples), _BATCH):
            batch = examples[begin : begin + _BATCH]
            self._batch(batch, rows, answers)
            self.done += len(batch)
            self.on_progress("tokenizing", self.done, self.total)
        return rows

    def _batch(self, examples: Sequence[Example], rows: TokenSet, answers: Answers | None) -> None:
        rendered = [self.render(example) for example in examples]
        encoded = encode_batch(self.tokenizer, rendered, self.masked)
        for example, item, (plain, trained) in zip(examples, rendered, encoded, strict=True):
            max_length, on_long = self.dataset.max_length, self.dataset.on_long
            for piece in finish_rows(plain, trained, item, self.special, max_length, on_long, self.counts):
                if answers is not None:
                    answers.append(piece.trained.index(True), example.label or "")
                learned = [self.everything or learn for learn in piece.trained]
                rows.append(piece.ids, [i if learn else IGNORED for i, learn in zip(piece.ids, learned, strict=True)])


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
