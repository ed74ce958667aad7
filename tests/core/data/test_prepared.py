"""Prepared rows are kept under what they were made from: found again, never when anything differs or is damaged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data.identity import cache_key
from llmtui.core.data.prepare import Prepared, find_prepared, prepare
from llmtui.core.errors import DataError
from llmtui.core.home import cache_folder
from llmtui.core.preset import Preset, parse_preset

ROWS = "".join(f'{{"instruction": "word {n}", "output": "answer {n * n}"}}\n' for n in range(40))


@pytest.fixture
def folder(tmp_path: Path, bpe: Any) -> Path:
    bpe.save_pretrained(tmp_path / "model")
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "held.jsonl").write_text(ROWS[:200].rpartition("\n")[0])
    return tmp_path


def preset_of(*sets: str) -> Preset:
    text = "model: {name_or_path: model}\ndataset: {name_or_path: rows.jsonl, val_size: 4, max_length: 300}\n"
    return parse_preset(text, None, sets).preset


def key_of(folder: Path, *sets: str) -> str:
    key = cache_key(preset_of(*sets), folder, folder / "model")
    assert key is not None
    return key


def made(folder: Path, bpe: Any, *sets: str) -> Prepared:
    return prepare(preset_of(*sets), bpe, base_folder=folder, max_positions=None, on_progress=lambda *_: None,
                   key=key_of(folder, *sets))  # fmt: skip


def content(prepared: Prepared) -> list[dict[str, list[int]]]:
    return [prepared.train[n] for n in range(len(prepared.train))]


def test_what_was_made_is_found_with_all_its_counts(folder: Path, bpe: Any) -> None:
    first = made(folder, bpe)
    again = find_prepared(key_of(folder))
    assert again is not None
    assert content(again) == content(first)
    assert (again.data_hash, again.rows_read, len(again.train), again.warnings) == (
        first.data_hash, first.rows_read, len(first.train), first.warnings,
    )  # fmt: skip
    kept = prepare(preset_of(), bpe, base_folder=folder, max_positions=None, on_progress=lambda *_: None)
    assert content(kept) == content(first), "with and without a cache"


@pytest.mark.parametrize(
    "sets",
    [
        ["dataset.val_size=5"], ["dataset.template=text"], ["dataset.train_on=response"], ["dataset.max_length=299"],
        ["dataset.on_long=drop"], ["dataset.limit=30"], ["dataset.shuffle=true"], ["training.seed=1"],
        ["dataset.clean.lower=true"], ["dataset.columns={input: output, output: output}"],
        ["dataset.sources=[{name_or_path: held.jsonl}]"], ["dataset.val_size=0", "dataset.val=held.jsonl"],
    ],
    ids=lambda sets: sets[-1],
)  # fmt: skip
def test_every_setting_that_matters_has_rows_of_its_own(folder: Path, sets: list[str]) -> None:
    assert key_of(folder, *sets) != key_of(folder)


def test_what_does_not_matter_shares_them(folder: Path, tmp_path: Path) -> None:
    assert key_of(folder, "dataset.padding=max_length", "training.learning_rate=1", "training.max_steps=3") == key_of(
        folder
    )
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved, ignore=shutil.ignore_patterns("elsewhere"))
    assert key_of(moved) == key_of(folder), "content counts, not where it is"


@pytest.mark.parametrize("name", ["rows.jsonl", "model/tokenizer.json", "model/tokenizer_config.json"])
def test_another_byte_is_another_key(folder: Path, name: str) -> None:
    before = key_of(folder)
    path = folder / name
    path.write_text(path.read_text().replace("1", "2", 1))
    assert key_of(folder) != before


@pytest.mark.parametrize(
    "name", ["ids.bin", "trained.bin", "starts.column", "train.npy", "pieces.msgpack", "meta.json"]
)
@pytest.mark.parametrize("harm", ["gone", "torn", "flipped"])
def test_what_is_damaged_is_made_again(folder: Path, bpe: Any, name: str, harm: str) -> None:
    first = content(made(folder, bpe))
    path = cache_folder() / key_of(folder) / name
    if harm == "gone":
        path.unlink()
    elif harm == "torn":
        os.truncate(path, path.stat().st_size // 2)
    else:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 0x55
        path.write_bytes(raw)
    assert find_prepared(key_of(folder)) is None
    assert content(made(folder, bpe)) == first


def test_what_a_killed_process_left_is_taken_away(folder: Path, bpe: Any) -> None:
    left = cache_folder() / f".{key_of(folder)}.99999.tmp"
    left.mkdir()
    (left / "ids.bin").write_bytes(b"x" * 100)
    made(folder, bpe)
    assert not left.exists()


def test_a_store_stays_readable_when_the_cache_is_cleaned_under_it(folder: Path, bpe: Any) -> None:
    prepared = made(folder, bpe)
    before = content(prepared)
    shutil.rmtree(cache_folder())
    assert content(prepared) == before


def test_nothing_is_kept_of_what_cannot_be_trained_on(folder: Path, bpe: Any) -> None:
    with pytest.raises(DataError, match="0 of 40 rows"):
        made(folder, bpe, "dataset.max_length=2", "dataset.on_long=drop", "dataset.val_size=0")
    assert [path.name for path in cache_folder().iterdir() if not path.name.endswith(".lock")] == []
