"""Where rows come from: files, folders of files, several sources; each with columns and a limit of its own."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data import check_dataset, prepare
from llmtui.core.data.rows import RowReader
from llmtui.core.data.sources import local_files, sources_of
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset, parse_preset
from tests.core.data.readings import read, write

ALPACA = '{"instruction":"a","output":"x"}\n'
SHAREGPT = '{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"yo"}]}\n'


def preset_of(dataset: str) -> Preset:
    return parse_preset(f"model: {{name_or_path: a/b}}\ndataset: {{{dataset}, max_length: 400}}\n").preset


def rows_of(folder: Path, dataset: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """Every row of every source as its texts, and what was said."""
    notes: list[str] = []
    rows: list[tuple[str, ...]] = []
    for source in sources_of(preset_of(dataset).dataset, folder, notes.append):
        reader = RowReader(source.columns)
        for example in reader.read(source.records()):
            assert example is not None
            turns = tuple(turn.content for turn in example.turns)
            rows.append(
                turns or ((example.text,) if example.text is not None else (example.instruction, example.output))
            )
        reader.finish()
    return rows, notes


def test_a_folder_may_hold_every_kind_in_every_shape(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, "1.csv", "question,answer\nq,r\n")
    write(folder, "2.jsonl", SHAREGPT)
    write(folder, "3.json.gz", gzip.compress(b'{"rows":[{"prompt":"p","completion":"c"}]}'))
    pq.write_table(pa.table({"text": ["plain"]}), folder / "4.parquet")
    write(folder, "5.tsv", "instruction\toutput\nt\tu\n")
    write(folder, "6.txt", "line\n")
    write(folder, "7.jsonl", "")
    write(folder, "README.md", "no data")
    write(folder, ".hidden.jsonl", "{broken")
    write(folder, "dataset_info.json", '{"features": {}}')
    rows, notes = rows_of(tmp_path, "name_or_path: data")
    assert rows == [("q", "r"), ("hi", "yo"), ("p", "c"), ("plain",), ("t", "u"), ("line",)]
    assert notes == ["7.jsonl is empty"]


def test_a_file_of_a_folder_with_other_columns_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, "1.jsonl", ALPACA * 2000)
    write(folder, "2.csv", "frage,antwort\na,b\n")
    with pytest.raises(DataError, match=r"2\.csv: columns found: frage, antwort"):
        rows_of(tmp_path, "name_or_path: data")


def test_files_below_folders_are_found_and_other_splits_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    write(folder, "train-00000.jsonl", ALPACA)
    write(folder, "test-00000.jsonl", ALPACA)
    rows, notes = rows_of(tmp_path, "name_or_path: set")
    assert len(rows) == 2
    assert "also test-00000.jsonl" in notes[0]


def test_a_folder_of_save_to_disk_says_how_to_write_parquet(tmp_path: Path) -> None:
    write(tmp_path, "data-00000-of-00001.arrow", b"ARROW1")
    write(tmp_path, "state.json", "{}")
    with pytest.raises(DataError, match=r"save_to_disk — write it out as Parquet"):
        local_files(".", tmp_path)


def test_several_sources_stand_one_behind_the_other_each_with_its_own_settings(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", '{"instruction":"a1","output":"x"}\n{"instruction":"a2","output":"x"}\n')
    write(tmp_path, "b.csv", "frage,antwort\nb1,y\nb2,y\nb3,y\n")
    write(tmp_path, "c.jsonl", SHAREGPT)
    sources = (
        "[{name_or_path: b.csv, columns: {instruction: frage, output: antwort}, limit: 2}, {name_or_path: c.jsonl}]"
    )
    rows, _ = rows_of(tmp_path, f"name_or_path: a.jsonl, sources: {sources}")
    assert rows == [("a1", "x"), ("a2", "x"), ("b1", "y"), ("b2", "y"), ("hi", "yo")]
    assert rows_of(tmp_path, f"sources: {sources}")[0] == rows[2:]
    check_dataset(preset_of(f"sources: {sources}, val_size: 2"), tmp_path)
    with pytest.raises(DataError, match="takes 3 of 3 rows"):
        check_dataset(preset_of(f"sources: {sources}, val_size: 3"), tmp_path)


def test_shuffle_and_limit_are_over_all_sources(tmp_path: Path, bpe: Any) -> None:
    write(tmp_path, "a.jsonl", "".join(f'{{"instruction":"a{n}","output":"x"}}\n' for n in range(20)))
    write(tmp_path, "b.csv", "instruction,output\n" + "".join(f"b{n},y\n" for n in range(20)))
    dataset = "name_or_path: a.jsonl, sources: [{name_or_path: b.csv}], limit: 12"

    def kinds(more: str) -> str:
        made = prepare(
            preset_of(dataset + more), bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None
        )
        texts = [bpe.decode(made.train[row]["input_ids"]) for row in range(len(made.train))]
        return "".join("a" if "\na" in text else "b" for text in texts)

    assert kinds("") == "a" * 12
    mixed = kinds(", shuffle: true")
    assert len(mixed) == 12
    assert set(mixed) == {"a", "b"}


def test_a_typo_gets_the_nearest_name(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", ALPACA)
    with pytest.raises(DataError, match=r"did you mean .*b\.jsonl"):
        local_files("bb.jsonl", tmp_path)
    with pytest.raises(DataError, match="are not data files here"):
        local_files(write(tmp_path, "a.docx", "text").name, tmp_path)


def test_a_wrong_source_is_named_before_a_start(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", ALPACA)
    write(tmp_path, "b.jsonl", '{"instruction":"a","output":["x"]}\n')
    with pytest.raises(DataError, match=r'"output" is a list, not text \(b\.jsonl:1\)'):
        check_dataset(preset_of("name_or_path: a.jsonl, sources: [{name_or_path: b.jsonl}]"), tmp_path)
    with pytest.raises(DataError, match=r"did you mean .*b\.jsonl"):
        check_dataset(preset_of("name_or_path: a.jsonl, sources: [{name_or_path: bb.jsonl}]"), tmp_path)


def test_what_is_not_used_is_not_judged(tmp_path: Path) -> None:
    """Values behind the limit; a line that is no JSON is not a value."""
    write(tmp_path, "a.jsonl", ALPACA * 3 + '{"instruction":"a","output":["x"]}\n')
    check_dataset(preset_of("name_or_path: a.jsonl, limit: 3"), tmp_path)
    with pytest.raises(DataError):
        check_dataset(preset_of("name_or_path: a.jsonl, limit: 4"), tmp_path)


TEXT = "one\r\n two \u2028 still two\r\n\r\n \t\r\nthree\u0085 still three\nfour\n"


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("line", ["one", " two \u2028 still two", "three\u0085 still three", "four"]),
        ("paragraph", ["one\r\n two \u2028 still two", "three\u0085 still three\nfour"]),
        ("file", [TEXT]),
    ],
)
def test_plain_text_is_cut_as_the_preset_says(tmp_path: Path, cut: Any, expected: list[str]) -> None:
    for raw in (TEXT.encode(), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"), gzip.compress(TEXT.encode())):
        assert read(write(tmp_path, "a.txt", raw), cut).texts == expected
    write(tmp_path, "a.txt", TEXT)
    rows, _ = rows_of(tmp_path, f"name_or_path: a.txt, template: text, cut: {cut}")
    assert [row[0] for row in rows] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n\n\n\nb", ["a", "b"]), ("\n\na\nb\n\n", ["a\nb"]), ("a", ["a"]), ("a\n \nb\n", ["a", "b"]), ("a\r\rb\r", ["a", "b"])],
)  # fmt: skip
def test_paragraphs_are_separated_by_blank_lines(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert read(write(tmp_path, "a.txt", text), "paragraph").texts == expected


def test_lines_of_json_in_a_text_file_are_text_and_said(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a.txt", ALPACA))
    assert found.texts == [ALPACA.strip()]
    assert "a name that ends in .jsonl makes its lines rows" in found.notes[0]
