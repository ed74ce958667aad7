"""CSV and its relatives to rows: delimiter, header and blanks after delimiters as the first line has them."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TextIO

from llmtui.core.data.problems import Problems
from llmtui.core.data.records import Record
from llmtui.core.errors import DataError

_DELIMITERS: Final = ",;\t|"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are told apart."""

    delimiter: str
    blanks: bool
    """A blank follows every delimiter and belongs to it."""


def delimited_rows(file: TextIO, name: str, preferred: str | None) -> Iterator[Record]:
    """The rows below a header line. Text is kept as it is: nothing is a number, a truth value or missing.

    Args:
        file: opened with `newline=""`, so that line ends inside quotes stay what they are.
        preferred: the delimiter the name stands for; another one counts when the header has only that.

    Raises:
        DataError: quotes that do not close, rows with more or fewer fields than the header: all of them together.
    """
    csv.field_size_limit(sys.maxsize)
    first = file.readline()
    begin = 1
    if first.lower().startswith("sep=") and len(first.rstrip("\r\n")) == 5:  # Excel's own first line
        preferred, first, begin = first[4], file.readline(), 2
    while first and not first.strip():
        first, begin = file.readline(), begin + 1
    dialect = _dialect(first, preferred)
    reader = csv.reader(chain([first], file), delimiter=dialect.delimiter, skipinitialspace=dialect.blanks, strict=True)
    problems, line = Problems(), begin
    try:
        header = _header(next(reader, []), f"{name}:{begin}")
        line = begin + reader.line_num
        for row in reader:
            if any(row):
                fields = _fields(row, header)
                if fields is None:
                    kind = f"the header has {len(header)} fields ({', '.join(header)}), the row another number"
                    problems.add(kind, f"{name}:{line} has {len(row)}: {row[-1][:40]!r} is the last",
                                 "quote fields that hold the delimiter")  # fmt: skip
                elif not problems:
                    yield Record(f"{name}:{line}", fields)
            line = begin + reader.line_num
    except csv.Error as error:
        what = "a quote is not closed" if "unexpected end" in str(error) else str(error)
        problems.add(f"not readable as CSV: {what}", f"{name}:{line}", "check the quotes from this line on")
    problems.raise_if_any()


def looks_delimited(line: str) -> bool:
    """Whether a line could be a header."""
    return any(sign in line for sign in _DELIMITERS)


def _dialect(header: str, preferred: str | None) -> Dialect:
    outside = "".join(part for i, part in enumerate(header.split('"')) if i % 2 == 0)
    delimiter = preferred if preferred and preferred in outside else None
    if delimiter is None:
        counts = Counter(outside)
        delimiter = max(_DELIMITERS, key=lambda sign: (counts[sign], sign == ","))
    after = [part[:1] for part in outside.split(delimiter)[1:]]
    return Dialect(delimiter, bool(after) and all(sign == " " for sign in after))


def _header(row: Sequence[str], place: str) -> list[str]:
    header = [column.strip() for column in row]
    while len(header) > 1 and not header[-1]:  # delimiters at the end of every line, as spreadsheets leave them
        header.pop()
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(
            f"a column stands twice: {', '.join(header)}", place=place,
            hint="rename one; if this is a row, add a header line such as instruction,output",
        )  # fmt: skip
    return header


def _fields(row: list[str], header: list[str]) -> dict[str, str] | None:
    """The row by column; None when it has another number of fields."""
    if len(row) < len(header) or any(row[len(header) :]):
        return None
    if len(row) > len(header):
        row = row[: len(header)]
    return dict(zip(header, row, strict=True))
