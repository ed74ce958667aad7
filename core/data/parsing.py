"""The text of a data file to records: JSON, JSONL, delimited, Parquet, plain text; recognised by content.

A record is a mapping of column name to value with the place it stands at. Numbers keep the characters they are
written in (`Written`), so that `00123`, `4.0` and `1e5` stay what the file says.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.text_files import decode_text, read_bytes
from llmtui.core.errors import DataError

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".txt")


class Written(str):
    """A scalar that is not text in the file, as it is written there."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One row as read. `place` is `file:line` or `file, row N`."""

    place: str
    fields: dict[str, Any]


def suffix(path: Path) -> str:
    """The kind of a file by its name, `.gz` left out."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def parse_file(path: Path) -> tuple[list[Record], list[str]]:
    """All records of a file, and what is worth saying about it.

    Raises:
        DataError: with file, line and what stands there.
    """
    kind = suffix(path)
    if kind == ".parquet":
        return list(_parquet(path)), []
    text, said = decode_text(read_bytes(path), path.name)
    notes = [said] if said else []
    if not text.strip():
        raise DataError("the file is empty", place=path.name, hint="name another file")
    if kind in (".csv", ".tsv"):
        return list(_delimited(text, path.name, "\t" if kind == ".tsv" else None)), notes
    if kind in (".json", ".jsonl", ".ndjson"):
        return _json(text, path.name), notes
    return [Record(f"{path.name}:{n}", {"text": line}) for n, line in _lines(text) if line.strip()], notes


def stream_file(path: Path, note: Callable[[str], None]) -> Iterator[Record]:
    """The records of a file one after the other; what is worth saying about it goes to `note`."""
    records, notes = parse_file(path)
    for text in notes:
        note(text)
    yield from records


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines by `\\n` alone (U+2028 stays inside), numbered from 1, without a trailing `\\r`."""
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.removesuffix("\r")


# --- JSON -----------------------------------------------------------------------------------------


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f'the key "{key}" stands twice in one object')
        result[key] = value
    return result


def _constant(word: str) -> Any:
    return Written(word)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=Written, parse_float=Written, parse_constant=_constant, strict=False
)


def _json(text: str, name: str) -> list[Record]:
    stripped = text.lstrip()
    if stripped.startswith("["):
        return _array(_decode_whole(text, name), name)
    try:
        whole, end = _DECODER.raw_decode(stripped)
    except ValueError:
        return list(_json_lines(text, name))  # names the line
    if stripped[end:].strip():
        return list(_json_lines(text, name))
    if isinstance(whole, dict):
        return _object(whole, name)
    raise DataError("the file holds no rows", place=name, hint="write one JSON object per line, or a list of objects")


def _decode_whole(text: str, name: str) -> Any:
    try:
        start = len(text) - len(text.lstrip())
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _json_error(text, name, error) from error
    except ValueError as error:
        raise DataError(str(error), place=name, hint="remove one of the two") from error
    if text[end:].strip():
        line = text.count("\n", 0, end) + 1
        raise DataError(
            f"something stands after the end of the list: {text[end:].strip()[:40]!r}",
            place=f"{name}:{line}", hint="remove it",
        )  # fmt: skip
    return value


def _json_error(text: str, name: str, error: json.JSONDecodeError, line: int = 0) -> DataError:
    row = text.split("\n")[error.lineno - 1]
    near = row[max(0, error.colno - 20) : error.colno + 20].strip()
    what = "a comma too many" if _trailing_comma(text, error.pos) else error.msg
    return DataError(
        f"not JSON: {what} at column {error.colno}, near {near!r}",
        place=f"{name}:{line or error.lineno}", hint="check the line",
    )  # fmt: skip


def _trailing_comma(text: str, position: int) -> bool:
    before = text[:position].rstrip()
    return before.endswith(",") and (position >= len(text) or text[position : position + 1] in "]}\n")


def _json_lines(text: str, name: str) -> Iterator[Record]:
    for number, line in _lines(text):
        if not line.strip():
            continue
        try:
            value, end = _DECODER.raw_decode(line, len(line) - len(line.lstrip()))
        except json.JSONDecodeError as error:
            raise _json_error(line, name, error, number) from error
        except ValueError as error:
            raise DataError(str(error), place=f"{name}:{number}", hint="remove one of the two") from error
        if rest := line[end:].strip():
            cure = "remove the comma: JSON lines have none between them" if rest == "," else "write one object per line"
            raise DataError(f"something stands after the object: {rest[:40]!r}", place=f"{name}:{number}", hint=cure)
        if not isinstance(value, dict):
            raise DataError("the line is no JSON object", place=f"{name}:{number}", hint='write {"instruction": …}')
        yield Record(f"{name}:{number}", value)


def _array(value: Any, name: str) -> list[Record]:
    if not value:
        raise DataError("the list is empty", place=name, hint="name another file")
    records = []
    for number, item in enumerate(value, 1):
        if not isinstance(item, dict):
            raise DataError("the row is no JSON object", place=f"{name}, row {number}", hint='write {"instruction": …}')
        records.append(Record(f"{name}, row {number}", item))
    return records


def _object(whole: dict[str, Any], name: str) -> list[Record]:
    """One row, an object of columns, or rows under a key."""
    lists = {key: value for key, value in whole.items() if isinstance(value, list)}
    of_rows = [key for key, value in lists.items() if value and all(isinstance(item, dict) for item in value)]
    conversation = {"messages", "conversations"} & set(whole)
    if len(of_rows) == 1 and not conversation:
        return [Record(f"{name}, {of_rows[0]}[{i}]", row) for i, row in enumerate(lists[of_rows[0]])]
    if lists and len(lists) == len(whole) and not conversation:
        lengths = {len(value) for value in lists.values()}
        if len(lengths) != 1:
            sizes = ", ".join(f"{key}: {len(value)}" for key, value in lists.items())
            raise DataError(f"the columns differ in length ({sizes})", place=name, hint="make them equal")
        return [
            Record(f"{name}, row {i + 1}", {key: value[i] for key, value in lists.items()})
            for i in range(lengths.pop())
        ]
    return [Record(f"{name}:1", whole)]


# --- delimited, Parquet --------------------------------------------------------------------------


def _delimiter(header: str) -> str:
    outside = "".join(part for i, part in enumerate(header.split('"')) if i % 2 == 0)
    return max(",;\t|", key=lambda c: (outside.count(c), c == ","))


def _delimited(text: str, name: str, delimiter: str | None) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)
    first = text.split("\n", 1)[0]
    if delimiter is None or delimiter not in first:
        delimiter = _delimiter(first)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [column.strip() for column in next(reader)]
        if len(set(header)) != len(header):
            raise DataError(f"a column stands twice: {', '.join(header)}", place=f"{name}:1", hint="rename one")
        line = reader.line_num + 1
        for row in reader:
            if row and (len(row) > 1 or row[0]):
                if len(row) != len(header):
                    raise DataError(
                        f"{len(row)} fields where the header has {len(header)} ({', '.join(header)})",
                        place=f"{name}:{line}", hint="quote fields that hold the delimiter",
                    )  # fmt: skip
                yield Record(f"{name}:{line}", dict(zip(header, row, strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"not readable as CSV: {error}", place=f"{name}:{reader.line_num}", hint="check quotes"
        ) from error


def _parquet(path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not readable as Parquet: {error}", place=path.name, hint="check the file") from error
    for number, row in enumerate(table.to_pylist(), 1):
        fields = {
            key: value if value is None or isinstance(value, str | list | dict) else Written(value)
            for key, value in row.items()
        }
        yield Record(f"{path.name}, row {number}", fields)
