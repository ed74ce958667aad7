"""Cleaning, split, validation rows and labels on the whole way from a file to tokens: what is dropped is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data import Prepared, check_dataset, prepare
from llmtui.core.errors import DataError
from llmtui.core.preset import parse_preset

Rows = list[dict[str, Any]]


def rows(count: int, first: int = 0) -> Rows:
    return [{"instruction": f"Question {n}?", "output": f"Answer {n}"} for n in range(first, first + count)]


def write(path: Path, data: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")


def made(folder: Path, tokenizer: Any, data: Rows, dataset: str, val: Rows | None = None) -> Prepared:
    """What a worker would train on."""
    write(folder / "rows.jsonl", data)
    if val is not None:
        write(folder / "val.jsonl", val)
    text = f"model: {{name_or_path: a/b}}\ndataset: {{name_or_path: rows.jsonl, max_length: 400, {dataset}}}\n"
    preset = parse_preset(text).preset
    check_dataset(preset, folder)
    return prepare(preset, tokenizer, base_folder=folder, max_positions=None, on_progress=lambda *_: None)


def texts(tokens: Any, tokenizer: Any) -> list[str]:
    return [tokenizer.decode(tokens[row]["input_ids"], skip_special_tokens=True) for row in range(len(tokens))]


def test_copies_never_stand_on_both_sides(tmp_path: Path, bpe: Any) -> None:
    data = [*rows(20), *rows(10)]
    got = made(tmp_path, bpe, data, "val_size: 8")
    assert got.val is not None
    assert (len(got.train), len(got.val)) == (22, 8)
    assert not set(texts(got.train, bpe)) & set(texts(got.val, bpe))
    assert any("so that no copy of a row stands on both" in note for note in got.warnings)
    again = made(tmp_path, bpe, data, "val_size: 8")
    assert again.data_hash == got.data_hash, "the same seed, the same split"


def test_copies_that_leave_nothing_to_hold_out_are_said(tmp_path: Path, bpe: Any) -> None:
    got = made(tmp_path, bpe, rows(2) * 10, "val_size: 4")
    assert (len(got.train), got.val) == (20, None)
    assert any("no row can be held out" in note for note in got.warnings)


def test_rows_of_a_validation_file_leave_training(tmp_path: Path, bpe: Any) -> None:
    got = made(tmp_path, bpe, rows(20), "val: val.jsonl", [*rows(5), *rows(5, 100)])
    assert got.val is not None
    assert (len(got.train), len(got.val)) == (15, 10)
    assert texts(got.val, bpe)[0].endswith("Answer 0")
    assert not set(texts(got.train, bpe)) & set(texts(got.val, bpe))
    assert 5 in got.dropped.values()


def test_what_cleaning_makes_equal_is_a_copy_too(tmp_path: Path, bpe: Any) -> None:
    shouted = [{name: text.upper() for name, text in row.items()} for row in rows(5)]
    got = made(tmp_path, bpe, rows(20), "val: val.jsonl, clean: {lower: true}", shouted)
    assert got.val is not None
    assert (len(got.train), len(got.val)) == (15, 5)
    got = made(tmp_path, bpe, [*rows(20), *[{k: v.upper() for k, v in row.items()} for row in rows(6)]],
               "clean: {lower: true, duplicates: true, max_length: 20}")  # fmt: skip
    assert len(got.train) == 10, "of Question 10? and Answer 10 there are too many characters"
    assert sorted(got.dropped.values()) == [6, 10]
    assert any("clean.lower changed 26 rows" in note for note in got.warnings)


def test_a_validation_file_that_is_the_training_file_is_refused(tmp_path: Path, bpe: Any) -> None:
    with pytest.raises(DataError, match="every training row is a validation row too"):
        made(tmp_path, bpe, rows(5), "val: val.jsonl", rows(9))


def test_a_validation_file_is_looked_at_before_a_start(tmp_path: Path, bpe: Any) -> None:
    with pytest.raises(DataError) as caught:
        made(tmp_path, bpe, rows(5), "val: vall.jsonl", rows(9))
    assert caught.value.place == "vall.jsonl"
    assert "did you mean" in caught.value.hint and "/val.jsonl" in caught.value.hint
    with pytest.raises(DataError) as caught:
        made(tmp_path, bpe, rows(5), "val: val.jsonl", [{"a": "b"}])
    assert "val.jsonl" in caught.value.place
    assert "columns found: a" in caught.value.message


def test_a_split_of_a_hub_set_validates(tmp_path: Path, bpe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmtui.core.data import sources
    from llmtui.core.data.parsing import Record

    asked = []

    def hub_records(name: str, config: str | None, split: str, *_: Any, **__: Any) -> Any:
        asked.append((name, config, split))
        some = rows(6) if split == "train" else rows(3, 50)
        return iter([Record(f"{name}, row {n}", row) for n, row in enumerate(some, 1)])

    monkeypatch.setattr(sources, "hub_records", hub_records)
    (tmp_path / "validation").mkdir()  # a folder of that name is not meant
    text = "model: {name_or_path: a/b}\ndataset: {name_or_path: who/set, config: ja, val: validation}\n"
    preset = parse_preset(text).preset
    got = prepare(preset, bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None)
    assert got.val is not None
    assert (len(got.train), len(got.val)) == (6, 3)
    assert {(name, split) for name, _, split in asked} == {("who/set", "train"), ("who/set", "validation")}
    assert {config for _, config, _ in asked} == {"ja"}


def test_labels_are_the_answers_and_what_is_none_is_named(tmp_path: Path, bpe: Any) -> None:
    data: Rows = [{"sentence": f"Film {n}", "kind": n % 2} for n in range(12)]
    got = made(tmp_path, bpe, data, "label: {column: kind, names: [bad, good]}, val_size: 4")
    assert got.val is not None
    assert got.answers is not None
    assert got.answers.names[:2] == ["bad", "good"]
    for text in texts(got.train, bpe):
        number = int(text.split("Film ")[1].split("\n")[0])
        assert text.endswith(("bad", "good")[number % 2])
    for row, text in enumerate(texts(got.val, bpe)):
        assert text.endswith(got.answers.names[got.answers.labels[row]])
    data[3] = {"sentence": "Film 3", "kind": 2}
    data[5] = {"sentence": "Film 5"}
    with pytest.raises(DataError) as caught:
        made(tmp_path, bpe, data, "label: {column: kind, names: [bad, good]}")
    assert "rows.jsonl:4: '2'" in caught.value.message
    assert "rows.jsonl:6" in caught.value.message
