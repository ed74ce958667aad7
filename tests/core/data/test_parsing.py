"""Real people's files: what stands in them is what is read, and what cannot be read says where."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core.data.rows import Example
from llmtui.core.errors import DataError
from tests.core.data.readings import read, refused, write


def examples(path: Path, **columns: str) -> tuple[list[Example | None], dict[str, int]]:
    found = read(path, **columns)
    return found.examples, found.dropped


ROW = '{"instruction": "表示", "input": "", "output": "ソ"}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", ROW + "\n"), ("a.json", f"[{ROW}]"), ("a.csv", "instruction,output\n表示,ソ\n"),
     ("a.tsv", "instruction\toutput\n表示\tソ\n"), ("a.json", ROW), ("a.jsonl", f"[{ROW}]")],
)  # fmt: skip
def test_every_encoding_of_every_form_reads_the_same(tmp_path: Path, encoding: str, name: str, text: str) -> None:
    path = write(tmp_path, name, text.encode(encoding))
    (example,), _ = examples(path)
    assert example is not None
    assert (example.instruction, example.output) == ("表示", "ソ")
    said = read(path).notes
    assert bool(said) == (encoding in ("cp932", "utf-16"))
    packed = write(tmp_path, name + ".gz", gzip.compress(text.encode(encoding)))
    assert examples(packed)[0][0] is not None


@pytest.mark.parametrize(
    "answer", ["NA", "null", "None", "N/A", "00123", "4.0", "4", "True", "1e5", "=1+1", "nan", "-", "''"]
)
def test_answers_that_look_like_something_else_stay_text(tmp_path: Path, answer: str) -> None:
    (example,), _ = examples(write(tmp_path, "a.csv", f"instruction,output\nq?,{answer}\n"))
    assert example is not None
    assert example.output == answer


@pytest.mark.parametrize(
    ("written", "read"), [("7", "7"), ("4.0", "4.0"), ("1e5", "1e5"), ("true", "true"), ("00", None)]
)
def test_json_numbers_keep_their_characters(tmp_path: Path, written: str, read: str | None) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"instruction":"a","output":{written}}}\n')
    if read is None:
        assert "a.jsonl:1" in refused(path)
    else:
        (example,), _ = examples(path)
        assert example is not None
        assert example.output == read


def test_a_list_where_text_should_be_names_the_row_and_counts(tmp_path: Path) -> None:
    rows = [f'{{"instruction":"a","output":["y{i}"]}}' for i in range(7)]
    text = refused(write(tmp_path, "a.jsonl", '{"instruction":"a","output":"x"}\n' + "\n".join(rows)))
    assert '"output" is a list' in text
    assert "a.jsonl:2" in text
    assert "2 more" in text


def test_missing_and_empty_fields_take_the_short_form_or_are_dropped_and_counted(tmp_path: Path) -> None:
    path = write(
        tmp_path, "a.jsonl",
        '{"instruction":"a","input":"z","output":"x"}\n{"instruction":"b","output":"y"}\n'
        '{"instruction":"c","input":null,"output":null}\n{"instruction":"d","input":"","output":""}\n',
    )  # fmt: skip
    got, dropped = examples(path)
    assert [e.input if e else None for e in got] == ["z", "", None, None]
    assert dropped == {"no output": 2}


@pytest.mark.parametrize(
    "text",
    ['{"instruction":["a","b"],"output":["x","y"]}', '{"version":"1","data":[{"instruction":"a","output":"x"},{"instruction":"b","output":"y"}]}',
     '[{"instruction":"a","output":"x"},{"instruction":"b","output":"y"}]',
     '{"instruction":"a","output":"x"}\n{"instruction":"b","output":"y"}\n',
     '\n{"instruction":"a","output":"x"}\r\n\r\n{"instruction":"b","output":"y"}\r\n'],
)  # fmt: skip
def test_shapes_are_found_by_content(tmp_path: Path, text: str) -> None:
    for name in ("a.json", "a.jsonl"):
        got, _ = examples(write(tmp_path, name, text))
        assert [(e.instruction, e.output) for e in got if e] == [("a", "x"), ("b", "y")]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", '[{"instruction":"a","output":"x"},]', "a.json:1"),
        ("a.jsonl", '{"instruction":"a","output":"x"},\n{"instruction":"b","output":"y"}\n', "comma"),
        ("a.jsonl", '{"instruction":"a","output":"x"}\n{"instruction":"b","output":\n', "a.jsonl:2"),
        ("a.jsonl", '{"instruction":"a","output":"x","output":"y"}\n', 'key "output" stands twice'),
        ("a.json", '[{"instruction":"a","output":"x","output":"y"}]', 'key "output" stands twice'),
        ("a.json", '[{"instruction":"a","output":"x"}', "a.json:1"),
        ("a.jsonl", "", "empty"),
        ("a.json", "[]", "empty"),
        ("a.json", "  \n", "empty"),
        ("a.json", "[1, 2]", "row 1"),
        ("a.csv", "instruction,output\na,b\nc,d,e\n", "a.csv:3"),
        ("a.csv", 'instruction,output\na,"b\n', "a.csv"),
        ("a.csv", "a,b\nc,d\n", "columns found: a, b"),
        ("a.csv", "instruction,instruction\na,b\n", "twice"),
        ("a.json", '{"instruction":["a"],"output":["x","y"]}', "differ in length"),
        ("a.jsonl", b"\x81\xff\xfe\x00{", "a.jsonl:1"),
        ("a.jsonl.gz", b"\x1f\x8bgarbage", "cannot be read"),
        ("a.parquet", b"PAR1 not", "Parquet"),
    ],
)
def test_what_cannot_be_read_says_where_and_what_to_do(
    tmp_path: Path, name: str, text: str | bytes, expected: str
) -> None:
    assert expected in refused(write(tmp_path, name, text))


@pytest.mark.parametrize(
    "text",
    [
        "instruction;output\na;b\n",
        "instruction, output\na,b\n",
        "instruction\toutput\na\tb\n",
        "instruction|output\na|b\n",
    ],
)
def test_delimiters_and_blanks_in_the_header_are_recognised(tmp_path: Path, text: str) -> None:
    (example,), _ = examples(write(tmp_path, "a.csv", text))
    assert example is not None
    assert (example.instruction, example.output) == ("a", "b")


def test_line_ends_inside_values_are_kept(tmp_path: Path) -> None:
    (example,), _ = examples(write(tmp_path, "a.csv", 'instruction,output\r\nq,"a\r\nb\u2028c"\r\n'))
    assert example is not None
    assert example.output == "a\r\nb\u2028c"
    (example,), _ = examples(write(tmp_path, "a.jsonl", '{"instruction":"q","output":"a\\r\\nb\u2028c\u0085d"}\n'))
    assert example is not None
    assert example.output == "a\r\nb\u2028c\u0085d"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"conversations":[{"from":"humam","value":"hi"},{"from":"gpt","value":"yo"}]}', "role 'humam' is unknown"),
        (
            '{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]}',
            "turn 2",
        ),
        ('{"messages":[{"role":"assistant","content":"first"}]}', "turn 1"),
        ('{"messages":[{"role":"user","content":null}]}', "no text"),
        ('{"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}', "after the first turn"),
        ('{"messages":"hi"}', "not a list"),
        ('{"messages":["hi"]}', "no object"),
    ],
)
def test_conversations_name_row_turn_and_role(tmp_path: Path, row: str, expected: str) -> None:
    text = refused(write(tmp_path, "a.jsonl", row + "\n"))
    assert expected in text
    assert "a.jsonl:1" in text


def test_conversations_of_both_spellings_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path, "a.jsonl",
        '{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"hi"},{"from":"gpt","value":"yo"}]}\n'
        '{"messages":[]}\n{"messages":[{"role":"user","content":"a"}]}\n',
    )  # fmt: skip
    got, dropped = examples(path)
    assert got[0] is not None
    assert [t.role for t in got[0].turns] == ["system", "user", "assistant"]
    assert dropped == {"no answer": 2}


def test_columns_can_be_mapped_and_wrong_ones_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "frage,antwort\na,b\n")
    got, _ = examples(path, instruction="frage", output="antwort")
    assert got[0] is not None
    with pytest.raises(DataError, match='no column "fragen"'):
        examples(path, instruction="fragen", output="antwort")


def test_parquet_keeps_text_and_writes_numbers_out(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"instruction": ["a", "b"], "output": ["00123", "NA"], "n": [1, 2]}), tmp_path / "a.parquet"
    )
    got, _ = examples(tmp_path / "a.parquet")
    assert [e.output for e in got if e] == ["00123", "NA"]


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(_TEXT, _TEXT)
def test_any_text_survives_jsonl_and_csv(
    tmp_path_factory: pytest.TempPathFactory, instruction: str, output: str
) -> None:
    import csv
    import json

    folder = tmp_path_factory.mktemp("any")
    path = write(
        folder, "a.jsonl", json.dumps({"instruction": instruction, "output": output}, ensure_ascii=False) + "\n"
    )
    (example,), _ = examples(path)
    assert example is not None
    assert (example.instruction, example.output) == (instruction, output)
    if "\x00" not in instruction + output:
        with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows([["instruction", "output"], [instruction, output]])
        (example,), _ = examples(folder / "a.csv")
        assert example is not None
        assert (example.instruction, example.output) == (instruction, output)
