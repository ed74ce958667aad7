"""The numbers of `llmtui data` are those of the rows that the worker is fed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from llmtui.core.data import Prepared, prepare
from llmtui.core.data.statistics import lengths_of, padding_shares, statistics
from llmtui.core.preset import Preset, parse_preset

Rows = list[dict[str, Any]]


def preset_of(dataset: str = "", training: str = "") -> Preset:
    text = f"model: {{name_or_path: a/b}}\ndataset: {{name_or_path: rows.jsonl, {dataset}}}\ntraining: {{{training}}}\n"
    return parse_preset(text).preset


def counted(folder: Path, tokenizer: Any, rows: Rows, dataset: str = "", training: str = "") -> tuple[Prepared, Any]:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    preset = preset_of(dataset, training)
    made = prepare(preset, tokenizer, base_folder=folder, max_positions=None, on_progress=lambda *_: None)
    return made, statistics(made, preset)


def texts(*lengths: int) -> Rows:
    """Rows of one token a letter."""
    return [{"text": "Z" * length} for length in lengths]


def test_rows_are_counted_by_source_and_reason(tmp_path: Path, bpe: Any) -> None:
    rows = [{"instruction": f"Question {n}?", "output": "Yes." if n % 3 else ""} for n in range(9)]
    _, got = counted(tmp_path, bpe, rows, "val_size: 2, clean: {lower: true}, max_length: 400")
    assert (got.rows_read, got.train.rows, got.val.rows) == (9, 4, 2)
    assert sum(got.dropped.values()) == 3
    (source,) = got.sources
    assert (source.name, source.rows, source.dropped) == ("rows.jsonl", 9, got.dropped)
    assert got.cleaned == {"lower": 6}


@pytest.mark.parametrize(
    ("on_long", "rows", "cut", "split", "without_end"),
    [("cut", 3, 1, 0, 1), ("drop", 2, 0, 0, 0), ("split", 5, 0, 1, 2)],
)
def test_long_rows_show_in_every_count(
    tmp_path: Path, bpe: Any, on_long: str, rows: int, cut: int, split: int, without_end: int
) -> None:
    data = texts(4, 9, 25)
    made, got = counted(tmp_path, bpe, data, f"template: text, max_length: 10, on_long: {on_long}")
    assert (got.train.rows, got.train.rows_cut, got.rows_split) == (rows, cut, split)
    assert got.train.rows_without_end == without_end
    assert got.val is None
    assert (got.lengths.rows, got.lengths.longest, got.lengths.longer) == (3, 26, 1), "as they were before"
    assert got.tokens_per_epoch == got.train.tokens == sum(made.train.lengths)


def test_tokens_that_nothing_predicts_are_not_counted_as_trained(tmp_path: Path, bpe: Any, rinna: Any) -> None:
    for tokenizer in (bpe, rinna):
        made, got = counted(tmp_path, tokenizer, texts(4, 9, 25), "template: text")
        labels = [made.train[row]["labels"] for row in range(3)]
        assert got.train.trained_tokens == sum(label >= 0 for row in labels for label in row[1:])


def test_labels_are_counted_on_both_sides(tmp_path: Path, bpe: Any) -> None:
    rows = [{"text": f"sentence {n}", "kind": "pos" if n % 4 else "neg"} for n in range(12)]
    _, got = counted(tmp_path, bpe, rows, "label: {column: kind}, val_size: 4, max_length: 400")
    both = {name: got.train.labels[name] + got.val.labels[name] for name in got.train.labels}
    assert both == {"pos": 9, "neg": 3}
    assert (sum(got.train.labels.values()), sum(got.val.labels.values())) == (8, 4)


def test_steps_are_those_of_the_plan(tmp_path: Path, bpe: Any) -> None:
    training = "per_device_train_batch_size: 2, gradient_accumulation_steps: 2, num_train_epochs: 3"
    _, got = counted(tmp_path, bpe, texts(*[5] * 9), "template: text", training)
    assert (got.effective_batch, got.steps_per_epoch, got.total_steps, got.epochs) == (4, 3, 9, 3.0)
    _, got = counted(tmp_path, bpe, texts(*[5] * 9), "template: text", training + ", max_steps: 4")
    assert (got.total_steps, got.epochs) == (4, 4 / 3)


def test_padding_is_that_of_the_batches_in_their_order() -> None:
    lengths: Any = numpy.array([2, 10, 2, 10, 4])
    got = padding_shares(lengths, preset_of(training="per_device_train_batch_size: 2"))
    assert got["sequential"] == pytest.approx(1 - 28 / 44)
    many: Any = numpy.array([2, 10] * 40)
    grouped = padding_shares(many, preset_of(training="per_device_train_batch_size: 2"))
    assert grouped["group_by_length"] < 0.1
    assert 0.1 < grouped["random"] < grouped["sequential"] == pytest.approx(0.4)
    full = padding_shares(lengths, preset_of("padding: max_length, max_length: 16", "per_device_train_batch_size: 2"))
    assert set(full.values()) == {1 - 28 / 80}
    assert set(padding_shares(lengths, preset_of(training="per_device_train_batch_size: 1")).values()) == {0.0}


@pytest.mark.parametrize("longest", [1, 2, 16, 17, 100, 255, 256, 257, 300, 3000, 100_000])
@pytest.mark.parametrize("max_length", [2, 10, 256, 2048])
def test_every_row_is_in_one_bin_and_no_bin_straddles_the_limit(longest: int, max_length: int) -> None:
    lengths: Any = numpy.concatenate([numpy.arange(1, longest + 1), [longest, 1]])
    got = lengths_of(lengths, max_length)
    assert sum(part.rows for part in got.bins) == len(lengths)
    assert got.bins[0].first == 1
    assert got.bins[-1].last >= longest
    assert len(got.bins) <= 24
    for part, following in zip(got.bins, got.bins[1:], strict=False):
        assert following.first == part.last + 1
    for part in got.bins:
        assert part.rows == int(((lengths >= part.first) & (lengths <= part.last)).sum())
        assert part.first > max_length or part.last <= max_length or longest <= max_length
    assert sum(part.rows for part in got.bins if part.first > max_length) == got.longer or longest <= max_length
