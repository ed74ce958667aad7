"""A data file to records, one after the other; what it holds is recognised by its content first.

A record is a mapping of column name to value with the place it stands at. Numbers keep the characters they are
written in (`Written`), so that `00123`, `4.0` and `1e5` stay what the file says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from llmtui.core.data.delimited import delimited_rows
from llmtui.core.data.json_rows import JsonRows
from llmtui.core.data.json_values import DECODER
from llmtui.core.data.parquet_rows import MAGIC, parquet_rows
from llmtui.core.data.plain_text import Cut, plain_rows
from llmtui.core.data.records import Part, Record, Written
from llmtui.core.data.text_files import TextFile, first_bytes, text_file
from llmtui.core.errors import DataError

__all__ = ["SUFFIXES", "Cut", "Record", "Written", "stream_file", "suffix"]

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")
_LOOKED_AT: Final = 1000  # rows whose columns are looked at before the first is handed on
_HEAD: Final = 1 << 16


def suffix(path: Path) -> str:
    """The kind of a file by its name, `.gz` left out."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def stream_file(path: Path, note: Callable[[str], None], cut: Cut = "line") -> Iterator[Record]:
    """The records of a file one after the other; memory does not grow with the file.

    Args:
        note: told what is worth saying: an encoding, a name that does not fit, what was replaced.
        cut: what a row of plain text is.

    Raises:
        DataError: with file, line and what stands there.
    """
    rows = _rows(path, note, cut)
    first = list(islice(rows, _LOOKED_AT))
    names: dict[str, None] = {}
    for record in first:
        names.update(dict.fromkeys(record.fields))
    part = Part(path.name, tuple(names))
    for record in chain(first, rows):
        yield Record(record.place, record.fields, part)


def _rows(path: Path, note: Callable[[str], None], cut: Cut) -> Iterator[Record]:
    kind, head = suffix(path), first_bytes(path, _HEAD)
    if head.startswith(MAGIC) or (kind == ".parquet" and not head.lstrip().startswith((b"{", b"["))):
        if kind != ".parquet" and head.startswith(MAGIC):
            note(f"{path.name} holds Parquet and was read so")
        yield from parquet_rows(path)
        return
    file = text_file(path)
    begin = _begin(file)
    if file.note:
        note(file.note)
    if not begin:
        raise DataError("the file is empty", place=path.name, hint="name another file")
    json_inside = _is_json(begin)
    if kind in (".csv", ".tsv", ".parquet") and json_inside:
        note(f"{path.name} holds JSON and was read so")
        kind = ".json"
    if kind in (".csv", ".tsv"):
        with file.open(newline="") as text:
            yield from delimited_rows(text, file.name, "\t" if kind == ".tsv" else None)
    elif kind in (".json", ".jsonl", ".ndjson"):
        rows = JsonRows(file)
        yield from rows.rows()
        if rows.mended:
            note(f"{path.name}: {rows.mended} broken characters (half of a surrogate pair) became \ufffd, "
                 f"the first at {rows.mended_at}")  # fmt: skip
    else:
        if json_inside and cut == "line":
            note(f"{path.name} holds JSON and is read as text; a name that ends in .jsonl makes its lines rows")
        with file.open() as text:
            yield from plain_rows(text, file.name, cut)


def _begin(file: TextFile) -> str:
    """The first text that is not blank; empty when there is none."""
    with file.open() as text:
        while chunk := text.read(_HEAD):
            if begin := chunk.lstrip():
                return begin
    return ""


def _is_json(begin: str) -> bool:
    """Whether a text begins with a JSON object, or a list of them."""
    line = begin.split("\n", 1)[0]
    if not line.startswith(("{", "[")):
        return False
    try:
        value, _ = DECODER.raw_decode(line)
    except (ValueError, RecursionError):
        return begin.lstrip("[").lstrip().startswith('{"')
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))
