"""Inputs that broke other tools, each with the value it must come to or the sentence it must be refused with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data import check_dataset, prepare
from llmtui.core.errors import DataError, LlmtuiError
from llmtui.core.preset import parse_preset
from tests.core.data.readings import read, refused, write

A1_CSV = "instruction,output\n挨拶して,こんにちは\n".encode("cp932")
A1_JSONL = '{"instruction":"表示","output":"ソ"}\n'.encode("cp932")
A2 = b"\xef\xbb\xbfinstruction,output\nhi,yo\n"
A2_JSON = '{"instruction":"hi","output":"yo"}\n'


def test_a1_a_japanese_excel_file(tmp_path: Path) -> None:
    found = read(write(tmp_path, "sj.csv", A1_CSV))
    assert found.pairs == [("挨拶して", "こんにちは")]
    assert found.notes == ["sj.csv is not UTF-8; it was read as CP932 (Shift-JIS)"]
    assert read(write(tmp_path, "sj.jsonl", A1_JSONL)).pairs == [("表示", "ソ")]


def test_a2_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.csv", A2)).pairs == [("hi", "yo")]
    for name, text in (("a.jsonl", A2_JSON), ("a.json", f"[{A2_JSON}]"), ("a.json", A2_JSON)):
        for encoding in ("utf-8-sig", "utf-16"):
            found = read(write(tmp_path, name, text.encode(encoding)))
            assert found.pairs == [("hi", "yo")]
            assert found.notes == ([f"{name} is UTF-16"] if encoding == "utf-16" else [])


def test_a2_files_put_together_have_marks_in_the_middle(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.jsonl", A2_JSON.encode("utf-8-sig") * 3)).pairs == [("hi", "yo")] * 3


A3 = "instruction,output\nCountry code of Namibia?,NA\nJSON word for nothing?,null\nPython word?,None\n"


def test_a3_words_for_nothing_are_words(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a.csv", A3))
    assert [output for _, output in found.pairs] == ["NA", "null", "None"]
    assert not found.dropped


@pytest.mark.parametrize(
    "answer",
    ["00123", "4", "4.0", "True", "true", "N/A", "nan", "NaN", "inf", "1e5", "1_000", "-0", "+1", "0x1F", "2024-01-01",
     "=1+1", "$5", "#N/A", "''", "１２", "\\N", "[]", "{}", "12:30"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_a4_answers_keep_their_characters(tmp_path: Path, name: str, answer: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"instruction": ["q"], "output": [answer]}), path)
    elif name == "a.jsonl":
        write(tmp_path, name, json.dumps({"instruction": "q", "output": answer}) + "\n")
    else:
        sign = "," if name == "a.csv" else "\t"
        write(tmp_path, name, f"instruction{sign}output\nq{sign}{answer}\n")
    assert read(path).pairs == [("q", answer)]


def test_a4_a_column_of_numbers_with_a_gap_and_a_late_word(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a.csv", "instruction,output\n2+2?,4\nblank?,\n"))
    assert found.pairs == [("2+2?", "4")]
    assert found.dropped == {"no output": 1}
    found = read(write(tmp_path, "b.csv", "instruction,output\n" + "a,1\n" * 11_000 + "b,one\n"))
    assert found.pairs[-1] == ("b", "one")
    assert len(found.pairs) == 11_001


def test_a5_scalars_become_text_and_lists_name_their_row(tmp_path: Path) -> None:
    path = write(
        tmp_path, "a.jsonl",
        '{"instruction":"a","output":"x"}\n{"instruction":"b","output":7}\n{"instruction":"c","output":["y"]}\n',
    )  # fmt: skip
    assert refused(path) == '"output" is a list, not text (a.jsonl:3) — write it as text, or map another column'
    for written, text in (("7", "7"), ("7.50", "7.50"), ("true", "true"), ("1e400", "1e400"), ("-0", "-0"),
                          ("12345678901234567890123", "12345678901234567890123")):  # fmt: skip
        path = write(tmp_path, "a.jsonl", f'{{"instruction":"b","output":{written}}}\n')
        assert read(path).pairs == [("b", text)]
    assert "is an object" in refused(write(tmp_path, "a.jsonl", '{"instruction":"b","output":{"a":1}}\n'))


def test_a6_missing_and_empty_fields(tmp_path: Path) -> None:
    text = (
        '{"instruction":"a","input":"z","output":"x"}\n{"instruction":"b","output":"y"}\n'
        '{"instruction":"c","input":"","output":null}\n{"instruction":null,"output":"x"}\n{"output":"x"}\n'
    )
    found = read(write(tmp_path, "a.jsonl", text))
    assert found.pairs == [("a", "x"), ("b", "y")]
    assert found.dropped == {"no output": 1, "no instruction": 2}


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson", "a.json.gz"])
@pytest.mark.parametrize(
    "text",
    [
        '{"instruction":["a","b"],"output":["x","y"]}',
        '{"version":"1","data":[{"instruction":"a","output":"x"},{"instruction":"b","output":"y"}]}',
        '[{"instruction":"a","output":"x"},\n{"instruction":"b","output":"y"}]',
        '{"instruction":"a","output":"x"}\n{"instruction":"b","output":"y"}',
        '{\n"instruction":"a",\n"output":"x"\n}\n{\n"instruction":"b",\n"output":"y"\n}\n',
        '{"instruction":{"0":"a","1":"b"},"output":{"0":"x","1":"y"}}',
        '{\n  "rows": [\n    {"instruction":"a","output":"x"}, {"instruction":"b","output":"y"}\n  ]\n}',
        '{"instruction":"a","output":"x"}\r{"instruction":"b","output":"y"}\r',
    ],
)
def test_a8_shapes_are_found_by_content(tmp_path: Path, name: str, text: str) -> None:
    import gzip

    raw = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    assert read(write(tmp_path, name, raw)).pairs == [("a", "x"), ("b", "y")]


def test_a8_parquet_under_another_name_and_json_named_csv(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"instruction": ["a"], "output": ["x"]}), tmp_path / "a.json")
    found = read(tmp_path / "a.json")
    assert found.pairs == [("a", "x")]
    assert found.notes == ["a.json holds Parquet and was read so"]
    found = read(write(tmp_path, "a.csv", '{"instruction":"a","output":"x"}\n'))
    assert found.pairs == [("a", "x")]
    assert found.notes == ["a.csv holds JSON and was read so"]


@pytest.mark.parametrize(
    "row",
    ['{"instruction":"a","output":"x","tags":[{"n":1}]}', '{"instruction":"a","output":"x","tags":["n"]}',
     '{"instruction":"a","output":"x","meta":{"0":1}}'],
)  # fmt: skip
def test_a8_a_single_row_with_lists_is_a_row(tmp_path: Path, row: str) -> None:
    assert read(write(tmp_path, "a.json", row)).pairs == [("a", "x")]
    turns = '{"msgs":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}'
    assert len(read(write(tmp_path, "a.json", turns), messages="msgs").turns) == 1


def test_a8_the_cells_of_parquet_are_written_out_once(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = {
        "1": pa.array([1]), "0.1": pa.array([0.1], pa.float32()), "4.0": pa.array([4.0]), "true": pa.array([True]),
        "あ": pa.array(["あ".encode()]), "x": pa.array(["x"]).dictionary_encode(), "y": pa.array(["y"], pa.large_string()),
        "2024-01-02": pa.array([19724], pa.date32()),
    }  # fmt: skip
    for text, column in cells.items():
        pq.write_table(pa.table({"instruction": ["q"], "output": column}), tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet").pairs == [("q", text)]
    for gap in (pa.array([float("nan")]), pa.array([None], pa.int64()), pa.array([float("nan")], pa.float32())):
        pq.write_table(pa.table({"instruction": ["q"], "output": gap}), tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet").dropped == {"no output": 1}
    pq.write_table(pa.table({"instruction": ["q"], "output": [b"\xff\xfe"]}), tmp_path / "a.parquet")
    assert '"output" is binary data, not text (a.parquet, row 1)' in refused(tmp_path / "a.parquet")


def test_a8_csv_named_txt_is_text_and_csv_named_json_says_so(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.txt", "instruction,output\na,b\n")).texts == ["instruction,output", "a,b"]
    assert "let the name end in .csv" in refused(write(tmp_path, "a.json", "instruction,output\na,b\n"))
    assert "several keys: train, test" in refused(
        write(tmp_path, "a.json", '{"train":[{"text":"a"}],"test":[{"text":"b"}]}')
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", '[{"instruction":"a","output":"x"},]', "a.json:1: not JSON: a comma too many at column 35"),
        ("a.jsonl", '{"instruction":"a","output":"x"},\n' * 7, "after the object (a.jsonl:1: ','; a.jsonl:2"),
        ("a.jsonl", '{"instruction":"a","output":"x"},\n' * 7, "and 2 more) — remove the comma"),
        ("a.json", '[{"instruction":"a","output":"x"}', "the list is not closed after row 1"),
        ("a.json", '[{"instruction":"a","output":"x"}\n{"instruction":"b"}]', "a.json:2: not JSON: a comma is missing"),
        ("a.json", '[\n{"instruction":"a",\n"output":"x",,}]', "a.json:3"),
        ("a.jsonl", '{"instruction":"a","output":"x","output":"y"}\n', 'key "output" stands twice'),
        ("a.json", '[{"instruction":"a","output":"x","output":"y"}]', 'key "output" stands twice'),
        ("a.jsonl", "{'instruction':'a','output':'x'}\n", "double quotes"),
        ("a.jsonl", '{"instruction":"a","output":"C:\\path"}\n', "a.jsonl:1, column 32, near"),
        ("a.jsonl", '{"instruction":"a","output":"x"}\n{"instruction":"b","outp', "cut off"),
        ("a.jsonl", '{"instruction":"a","output":"x"}\n# end\n', "a.jsonl:2, column 1, near '# end'"),
        ("a.jsonl", '{"instruction":"a","output":"x"}{"instruction":"a","output":"x"}\n', "one object per line"),
        ("a.jsonl", '{"instruction":"a","output":"x"}\n["b"]\n7\n', "a.jsonl:2: '[\"b\"]'; a.jsonl:3: '7'"),
        ("a.json", '[{"instruction":"a","output":"x"}] {}', "after the end of the list"),
        ("a.json", "[" * 100_000, "too deep"),
        ("a.jsonl", '{"a":1}\n{"a":' + "[" * 100_000, "a.jsonl:2"),
    ],
)
def test_a9_broken_json_names_line_column_and_text(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert expected in refused(write(tmp_path, name, text))


A10 = {
    "typo": '{"conversations":[{"from":"humam","value":"hi"},{"from":"gpt","value":"yo"}]}',
    "twice": '{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]}',
    "first": '{"messages":[{"role":"assistant","content":"first"}]}',
    "null": '{"messages":[{"role":"user","content":null}]}',
    "late": '{"messages":[{"role":"user","content":"a"},{"role":"system","content":"s"}]}',
    "no role": '{"messages":[{"speaker":"user","content":"a"}]}',
    "tool": '{"messages":[{"role":"user","content":"a"},{"role":"tool","content":"{}"}]}',
    "call": '{"conversations":[{"from":"human","value":"a"},{"from":"function_call","value":"b"}]}',
    "picture": '{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"x"}]}]}',
    "text": '{"messages":"hi"}',
    "words": '{"messages":["hi"]}',
}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("typo", "role 'humam' is unknown (a.jsonl:2, turn 1) — use system, user and assistant"),
        ("twice", "the user speaks where the assistant should (a.jsonl:2, turn 2)"),
        ("first", "the assistant speaks where the user should (a.jsonl:2, turn 1)"),
        ("null", "a turn of the user has no text (a.jsonl:2, turn 1)"),
        ("late", "a system message stands after the first turn (a.jsonl:2, turn 2)"),
        ("no role", "a turn has no role (a.jsonl:2, turn 1 has speaker, content)"),
        ("tool", "role 'tool': tool calls cannot be trained on yet (a.jsonl:2, turn 2)"),
        ("call", "role 'function_call': tool calls cannot be trained on yet (a.jsonl:2, turn 2)"),
        ("picture", "a turn of the user has no text (a.jsonl:2, turn 1)"),
        ("text", "messages is not a list (a.jsonl:2)"),
        ("words", "a turn is no object (a.jsonl:2, turn 1)"),
    ],
)
def test_a10_conversations_name_row_turn_and_role(tmp_path: Path, case: str, expected: str) -> None:
    good = '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}\n'
    assert expected in refused(write(tmp_path, "a.jsonl", good + A10[case] + "\n"))


@pytest.mark.parametrize(
    ("row", "turns"),
    [
        ('{"messages":[{"role":"User ","content":"a"},{"role":"ASSISTANT","content":"b"}]}', "ua"),
        ('{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}],"system":"s"}', "sua"),
        ('{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}],"system":""}', "ua"),
        ('{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"model","content":"b"}]}',
         "sua"),
        ('{"conversations":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}', "ua"),
        ('{"messages":"[{\\"role\\":\\"user\\",\\"content\\":\\"a\\"},{\\"role\\":\\"assistant\\",\\"content\\":\\"b\\"}]"}',
         "ua"),
        ('{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"b"}]}',
         "ua"),
        ('{"prompt":[{"role":"user","content":"a"}],"completion":[{"role":"assistant","content":"b"}]}', "ua"),
    ],
)  # fmt: skip
def test_a10_every_spelling_of_a_conversation(tmp_path: Path, row: str, turns: str) -> None:
    wanted = {"s": ("system", "s"), "u": ("user", "a"), "a": ("assistant", "b")}
    assert read(write(tmp_path, "a.jsonl", row + "\n")).turns == [[wanted[sign] for sign in turns]]


def checked(folder: Path, dataset: str) -> None:
    """What is looked at before a start."""
    preset = parse_preset(f"model: {{name_or_path: a/b}}\ndataset: {{{dataset}}}\n").preset
    check_dataset(preset, folder)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("e.jsonl", "", "e.jsonl: the file is empty"), ("e.json", "[]", "e.json: the list is empty"),
        ("e.csv", "instruction,output\n", "no rows"), ("e.txt", "\n \n", "empty"), ("e.json", "{}", "no rows"),
        ("e.json", '{"data": []}', "no rows"), ("e.csv.gz", "", "empty"), ("e.jsonl", "\ufeff", "empty"),
        ("e.json", "null", "no rows"), ("e.jsonl", "\n\n", "empty"),
        ("e.jsonl", '{"instruction":"a","output":""}\n' * 3, "0 of 3 rows can be trained on (no output: 3)"),
    ],
)  # fmt: skip
def test_a11_nothing_at_any_stage_is_said(tmp_path: Path, name: str, content: str, expected: str) -> None:
    write(tmp_path, name, content)
    with pytest.raises(DataError) as caught:
        checked(tmp_path, f"name_or_path: {name}")
    assert expected in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("rows", "val_size", "expected"),
    [
        (2, "2000", "takes 2000 of 2 rows"), (2, "2", "takes 2 of 2 rows"), (2, "1", None), (2, "0", None),
        (2, '"0.1"', None), (2, "0.5", None), (2, "-1", "val_size"), (2, "1.5", "val_size"), (1, "0.1", "takes 1 of 1"),
        (2, "0.0", None), (2, "0.9", "takes 2 of 2 rows"), (2, "20%", None), (2, "two", "val_size"),
    ],
)  # fmt: skip
def test_a12_a_validation_size_is_rows_or_a_share(
    tmp_path: Path, rows: int, val_size: str, expected: str | None
) -> None:
    write(tmp_path, "two.jsonl", '{"instruction":"a","output":"x"}\n' * rows)
    if expected is None:
        checked(tmp_path, f"name_or_path: two.jsonl, val_size: {val_size}")
    else:
        with pytest.raises(LlmtuiError) as caught:
            checked(tmp_path, f"name_or_path: two.jsonl, val_size: {val_size}")
        assert expected in str(caught.value)


def test_a13_prompts_longer_than_max_length_are_dropped_and_counted(tmp_path: Path, bpe: Any) -> None:
    long = json.dumps({"instruction": "word " * 300, "output": "ok"}) + "\n"
    preset = parse_preset(
        "model: {name_or_path: a/b}\ndataset: {name_or_path: a.jsonl, max_length: 100, train_on: response}\n"
    ).preset
    write(tmp_path, "a.jsonl", long * 4)
    with pytest.raises(DataError, match=r"0 of 4 rows can be trained on \(no trained token: 4\)") as caught:
        prepare(preset, bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None)
    assert "raise dataset.max_length (100)" in caught.value.hint
    write(tmp_path, "a.jsonl", long * 4 + '{"instruction":"a","output":"b"}\n')
    preset = preset.model_copy(update={"dataset": preset.dataset.model_copy(update={"max_length": 200})})
    made = prepare(preset, bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None)
    assert (len(made.train), made.dropped) == (1, {"no trained token": 4})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("instruction;output\na;b\n", [("a", "b")]), ("instruction\toutput\na\tb\n", [("a", "b")]),
        ("instruction|output\na|b\n", [("a", "b")]), ("instruction, output\na, b\n", [("a", "b")]),
        ('instruction, output\na, "b, c"\n', [("a", "b, c")]), ("sep=;\ninstruction;output\na;b\n", [("a", "b")]),
        ('instruction,output\r\n"a\r\nb",c\r\n', [("a\r\nb", "c")]), ("instruction,output,,\na,b,,\n", [("a", "b")]),
        ("\n\ninstruction,output\na,b\n\n", [("a", "b")]), ('instruction,output\n"say ""hi""",5" pipe\n', [('say "hi"', '5" pipe')]),
        ("instruction,output\n  a ,  b\n", [("  a ", "  b")]), ("Instruction,OUTPUT\na,b\n", [("a", "b")]),
        (",instruction,output\n0,a,b\n", [("a", "b")]), ("instruction;output\na,1;b,2\n", [("a,1", "b,2")]),
        ('"instruction";"output"\n"a;b";"c"\n', [("a;b", "c")]), ("instruction,output\ra,b\r", [("a", "b")]),
        ("instruction,output\na,b\u2028c\u0085d\x0be\n", [("a", "b\u2028c\u0085d\x0be")]),
    ],
)  # fmt: skip
def test_a15_delimited_files_of_every_kind(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    assert read(write(tmp_path, "a.csv", text)).pairs == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\nc,d\n", "a.csv: columns found: a, b; expected instruction and output"),
        ("a,b\nc,d\n", "add a first line such as instruction,output"),
        ("What is 2+2?,4\nc,d\n", "this looks like a row, not a header"),
        ("hi,hi\nc,d\n", "if this is a row, add a header line"),
        ("instruction,output\na,b\nc,d,e\n", "a.csv:3 has 3: 'e' is the last"),
        ("instruction,output\na\nb,c\n", "a.csv:2 has 1"),
        ("instruction,output\n" + "a,b,c\n" * 8, "a.csv:6 has 3: 'c' is the last and 3 more)"),
        ('instruction,output\na,"b\nc,d\n', "a quote is not closed (a.csv:2)"),
        ('instruction,output\n"a"b,c\n', "a.csv:2"),
        ('instruction,output\n"a\nb",c\nd,e,f\n', "a.csv:4 has 3"),
        ("text\nhello, world\n", "a.csv:2 has 2"),
    ],
)
def test_a15_what_cannot_be_told_apart_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(write(tmp_path, "a.csv", text))
