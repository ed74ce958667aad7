"""Files are read row by row: what is in memory does not grow with them, and what is far down is found and named."""

from __future__ import annotations

import gc
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from llmtui.core.data.parsing import stream_file
from llmtui.core.data.problems import Problems
from llmtui.core.data.rows import RowReader
from llmtui.core.errors import DataError
from tests.core.data.readings import read, refused, write

ROW = json.dumps({"instruction": "表示 of things", "output": "answer " * 20}, ensure_ascii=False)


def parquet(rows: int) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    target = io.BytesIO()
    pq.write_table(pa.table({"instruction": ["表示"] * rows, "output": ["answer " * 20] * rows}), target)
    return target.getvalue()


KINDS: dict[str, Callable[[int], bytes]] = {
    "a.jsonl": lambda rows: f"{ROW}\n".encode() * rows,
    "a.json": lambda rows: ("[" + ",".join([ROW] * rows) + "]").encode(),
    "b.json": lambda rows: f"{ROW}\n".encode("cp932") * rows,
    "a.csv": lambda rows: ("instruction,output\n" + f"表示,{'answer ' * 20}\n" * rows).encode(),
    "a.txt": lambda rows: ("answer " * 20 + "\n").encode() * rows,
    "a.jsonl.gz": lambda rows: gzip.compress(f"{ROW}\n".encode() * rows, 1),
    "a.parquet": parquet,
    "a.parquet.gz": lambda rows: gzip.compress(parquet(rows), 1),
}


def peak(path: Path, rows: int) -> int:
    """Bytes of Python's own objects at the highest, while all rows are read and none is kept."""
    gc.collect()
    tracemalloc.start()
    reader = RowReader({})
    assert sum(1 for _ in reader.read(stream_file(path, lambda _: None))) == rows
    reader.finish()
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest


@pytest.mark.parametrize("name", KINDS)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(KINDS[name](3_000))
    few = peak(path, 3_000)
    path.write_bytes(KINDS[name](23_000))
    assert peak(path, 23_000) < 1.3 * few + 400_000


@pytest.mark.parametrize("text", [ROW, ROW + "\n", " \n" + ROW])
def test_a_list_over_many_chunks_names_the_row_and_line_that_is_wrong(tmp_path: Path, text: str) -> None:
    rows = [text] * 3000
    path = write(tmp_path, "a.json", "[" + ",\n".join(rows) + "]")
    assert len(read(path).pairs) == 3000
    rows[2500] = '{"instruction": "a" "output": "b"}'
    said = refused(write(tmp_path, "a.json", "[" + ",\n".join(rows) + "]"))
    line = "".join(f"{row},\n" for row in rows[:2500]).count("\n") + 1
    assert said.startswith(f"a.json:{line}: not JSON: Expecting ',' delimiter at column 21, near")
    assert "row 2501" in said


def test_the_column_of_a_list_on_one_line_is_counted_from_its_beginning(tmp_path: Path) -> None:
    text = "[" + ",".join([ROW] * 3000) + ",]"
    assert f"at column {len(text)}, near" in refused(write(tmp_path, "a.json", text))


@pytest.mark.parametrize("length", [100_000, 262_143, 262_144, 262_145, 600_000])
def test_values_longer_than_a_chunk_and_cut_by_its_end_are_whole(tmp_path: Path, length: int) -> None:
    rows = [{"instruction": "q" * length, "output": '😀\\u"表' * 3}, {"instruction": "r", "output": "s"}]
    wanted = [(str(row["instruction"]), str(row["output"])) for row in rows]
    for ascii_only in (False, True):
        path = write(tmp_path, "a.json", json.dumps(rows, ensure_ascii=ascii_only))
        assert read(path).pairs == wanted
        path = write(tmp_path, "b.json", "\n".join(json.dumps(r, indent=1, ensure_ascii=ascii_only) for r in rows))
        assert read(path).pairs == wanted


def test_a_column_that_comes_late_is_seen(tmp_path: Path) -> None:
    late = '{"instruction":"a","input":"z","output":"x"}\n'
    found = read(write(tmp_path, "a.jsonl", '{"instruction":"a","output":"x"}\n' * 1500 + late))
    assert found.examples[-1] is not None
    assert found.examples[-1].input == "z"


def test_a_wrong_line_is_told_before_any_row_behind_it(tmp_path: Path) -> None:
    """Also when only some rows are asked for: what was asked for cannot be wrong in silence."""
    good = '{"instruction":"a","output":"x"}\n'
    stream = stream_file(write(tmp_path, "a.jsonl", good * 2000 + "{,\n" + good * 10 + "{,\n"), lambda _: None)
    for _ in range(2000):
        next(stream)
    with pytest.raises(DataError, match=r"a\.jsonl:2001, column 2.*a\.jsonl:2012"):
        next(stream)


@pytest.mark.parametrize(
    ("written", "text", "said"),
    [
        ("a\\ud800b", "a\ufffdb", True), ("\\udc00\\ud800", "\ufffd\ufffd", True), ("\\uD83Dx", "\ufffdx", True),
        ("\\ud83d\\ude00", "😀", False), ("\\ud55c", "한", False), ("\\u0000\\u001b[0m", "\0\x1b[0m", False),
        ("a\tb\x01\x7f", "a\tb\x01\x7f", False), ("\\\\ud800", "\\ud800", False),
    ],
)  # fmt: skip
def test_halves_of_surrogate_pairs_are_replaced_and_said(tmp_path: Path, written: str, text: str, said: bool) -> None:
    row = f'{{"instruction":"{written}","output":"x"}}\n'
    for content in (row, f"[{row}]"):
        found = read(write(tmp_path, "a.json", content))
        assert found.pairs == [(text, "x")]
        assert bool(found.notes) == said
    if said:
        assert "half of a surrogate pair" in found.notes[0]


def test_problems_of_a_kind_stand_together_the_commonest_first() -> None:
    problems = Problems()
    problems.add("rare", "row 1", "mend it")
    for row in range(7):
        problems.add("common", f"row {row}", "mend them")
    with pytest.raises(DataError) as caught:
        problems.raise_if_any()
    assert caught.value.message == "common (row 0; row 1; row 2; row 3; row 4 and 2 more)\nrare (row 1)"
    assert caught.value.hint == "mend them"
