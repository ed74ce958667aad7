"""JSON and JSON lines to rows, whatever the file is called: lists, lines, columns, rows under a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from llmtui.core.data.columns import column_of
from llmtui.core.data.delimited import looks_delimited
from llmtui.core.data.json_values import (
    DECODER,
    DuplicateKeyError,
    JsonText,
    may_hold_surrogates,
    numbered_lines,
    without_surrogates,
)
from llmtui.core.data.problems import Problems
from llmtui.core.data.records import Record
from llmtui.core.data.text_files import TextFile
from llmtui.core.errors import DataError

CONVERSATIONS: Final = frozenset({"messages", "conversations", "conversation"})
_BEFORE: Final = " \t\r\n\ufeff"  # files that were put together keep the byte order marks of their parts
_NO_OBJECT: Final = 'write {"instruction": …, "output": …}'
_ONE_TWICE: Final = "remove one of the two"


class JsonRows:
    """Reads one file; `mended` counts halves of surrogate pairs that were replaced."""

    def __init__(self, file: TextFile) -> None:
        self._file = file
        self._name = file.name
        self.mended = 0
        self.mended_at = ""

    def rows(self) -> Iterator[Record]:
        """The rows, one after the other.

        Raises:
            DataError: with line and column; broken lines of one kind together.
        """
        with self._file.open() as file:
            text = JsonText(file)
            first = text.peek()
            if first == "[":
                yield from self._list(text)
                return
            if first != "{":
                raise self._no_rows(text)
        yield from self._objects()

    def _no_rows(self, text: JsonText) -> DataError:
        line = text.text[text.at :].split("\n", 1)[0].strip()
        hint = "write one JSON object per line, or a list of objects"
        if looks_delimited(line) and not line.startswith('"'):
            hint = "it looks like CSV: let the name end in .csv or .tsv"
        return DataError(f"not JSON: no rows, but {line[:40]!r}", place=f"{self._name}:{text.line}", hint=hint)

    # --- a list of objects ------------------------------------------------------------------------

    def _list(self, text: JsonText) -> Iterator[Record]:
        text.at += 1
        if text.peek() == "]":
            raise DataError("the list is empty", place=self._name, hint="name another file")
        problems, number = Problems(), 0
        while True:
            number += 1
            place = f"{self._name}, row {number}"
            item = self._value(text, number)
            if not isinstance(item, dict):
                problems.add("the row is no JSON object", place, _NO_OBJECT)
            elif not problems:
                yield Record(place, item)
            sign = text.peek()
            if sign == "]":
                break
            if sign != ",":
                raise self._between(text, number, sign)
            text.at += 1
        text.at += 1
        if text.peek():
            rest = text.text[text.at :].split("\n", 1)[0]
            raise DataError(
                f"something stands after the end of the list: {rest.strip()[:40]!r}",
                place=f"{self._name}:{text.line}", hint="remove it",
            )  # fmt: skip
        problems.raise_if_any()

    def _between(self, text: JsonText, number: int, sign: str) -> DataError:
        place = f"{self._name}:{text.line}"
        if not sign:
            return DataError(f"not JSON: the list is not closed after row {number}", place=place,
                             hint='add "]", or get the file again: it may have been cut off')  # fmt: skip
        near = text.text[text.at : text.at + 40].split("\n", 1)[0]
        return DataError(f"not JSON: a comma is missing after row {number}, before {near!r}", place=place,
                         hint="add the comma")  # fmt: skip

    def _value(self, text: JsonText, number: int) -> Any:
        text.peek()
        try:
            value, written = text.value()
        except json.JSONDecodeError as error:
            line, where = text.line_of(error.pos), _where(error.doc, error.pos, text.column_of(error.pos))
            row = f", row {number}" if number else ""
            raise DataError(f"not JSON: {_what(error)} at {where}{row}", place=f"{self._name}:{line}",
                            hint=_cure(error)) from error  # fmt: skip
        except DuplicateKeyError as error:
            raise DataError(str(error), place=f"{self._name}:{text.line}", hint=_ONE_TWICE) from error
        except RecursionError as error:
            raise DataError("lists or objects stand too deep in each other", place=f"{self._name}:{text.line}",
                            hint="check the file") from error  # fmt: skip
        if may_hold_surrogates(written):
            value = self._mended(value, f"{self._name}:{text.line}")
        return value

    # --- objects: one a line, one over several lines, several over several lines ---------------------

    def _objects(self) -> Iterator[Record]:
        with self._file.open() as file:
            lines = numbered_lines(file)
            first, second = next(lines), next(lines, None)
            if not _goes_on(first[1], second[1] if second else None):
                if second is None:
                    value = self._line(*first, problems := Problems())
                    problems.raise_if_any()
                    yield from self._object(value)
                else:
                    yield from self._lines(chain((first, second), lines))
                return
        with self._file.open() as file:
            text = JsonText(file)
            value, line = self._next_object(text)
            if not text.peek():
                yield from self._object(value)
                return
            yield Record(f"{self._name}:{line}", value)
            while text.peek():
                value, line = self._next_object(text)
                yield Record(f"{self._name}:{line}", value)

    def _next_object(self, text: JsonText) -> tuple[dict[str, Any], int]:
        text.peek()
        line = text.line
        value = self._value(text, 0)
        if not isinstance(value, dict):
            raise DataError("no JSON object stands here", place=f"{self._name}:{line}", hint=_NO_OBJECT)
        return value, line

    def _lines(self, lines: Iterator[tuple[int, str]]) -> Iterator[Record]:
        problems = Problems()
        for number, line in lines:
            value = self._line(number, line, problems)
            if not problems:
                yield Record(f"{self._name}:{number}", value)
        problems.raise_if_any()

    def _line(self, number: int, line: str, problems: Problems) -> Any:
        """The object of a line; what is wrong is noted."""
        place = f"{self._name}:{number}"
        line = line.rstrip().lstrip(_BEFORE)
        try:
            value, end = DECODER.raw_decode(line)
        except json.JSONDecodeError as error:
            problems.add(f"not JSON: {_what(error)}", f"{place}, {_where(line, error.pos)}", _cure(error))
            return None
        except DuplicateKeyError as error:
            problems.add(str(error), place, _ONE_TWICE)
            return None
        except RecursionError:
            problems.add("lists or objects stand too deep in each other", place, "check the line")
            return None
        if rest := line[end:].strip():
            cure = "remove the comma: JSON lines have none between them" if rest == "," else "write one object per line"
            problems.add("something stands after the object", f"{place}: {rest[:40]!r}", cure)
        elif not isinstance(value, dict):
            problems.add("the line is no JSON object", f"{place}: {line.strip()[:40]!r}", _NO_OBJECT)
        else:
            return self._mended(value, place) if may_hold_surrogates(line) else value
        return None

    def _mended(self, value: Any, place: str) -> Any:
        value, found = without_surrogates(value)
        if found and not self.mended:
            self.mended_at = place
        self.mended += found
        return value

    def _object(self, whole: dict[str, Any]) -> Iterator[Record]:
        """One row, an object of columns, or rows under a key."""
        lists = {key: value for key, value in whole.items() if isinstance(value, list)}
        of_rows = [key for key, value in lists.items() if value and all(isinstance(item, dict) for item in value)]
        conversation = (CONVERSATIONS | {"prompt"}) & set(whole) or _is_row(whole, of_rows)
        if len(of_rows) > 1 and not conversation:
            raise DataError(f"rows stand under several keys: {', '.join(of_rows)}", place=self._name,
                            hint="keep each in a file of its own")  # fmt: skip
        if of_rows and not conversation:
            key = of_rows[0]
            yield from (Record(f"{self._name}, {key}[{i}]", row) for i, row in enumerate(lists[key]))
        elif columns := _columns(whole, lists):
            lengths = {len(values) for values in columns.values()}
            if len(lengths) != 1:
                sizes = ", ".join(f"{key}: {len(values)}" for key, values in columns.items())
                raise DataError(f"the columns differ in length ({sizes})", place=self._name, hint="make them equal")
            for i in range(lengths.pop()):
                yield Record(f"{self._name}, row {i + 1}", {key: values[i] for key, values in columns.items()})
        elif not whole or (lists and not any(lists.values()) and not conversation):
            raise DataError("there are no rows", place=self._name, hint="name another file")
        else:
            yield Record(f"{self._name}:1", whole)


def _is_row(whole: dict[str, Any], of_rows: list[str]) -> bool:
    """Whether an object with lists of objects is a row itself: its texts are columns, or the objects are turns."""
    if any({"role", "from"} & set(item) for key in of_rows for item in whole[key][:1]):
        return True
    try:
        column_of((key for key, value in whole.items() if isinstance(value, str)), {})
    except DataError:
        return False
    return True


def _columns(whole: dict[str, Any], lists: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
    """The columns of an object of lists, or of pandas' objects of row numbers; None when it is something else."""
    if lists and len(lists) == len(whole) and any(lists.values()):
        turns = any(isinstance(value, dict) for values in lists.values() for value in values[:1])
        turns = turns or any(isinstance(value, str) for key in CONVERSATIONS & set(lists) for value in lists[key][:1])
        return None if turns else lists
    numbered = [value for value in whole.values() if isinstance(value, dict)]
    keys = set(numbered[0]) if len(numbered) == len(whole) and numbered else set()
    if keys and all(key.isdecimal() for key in keys) and all(set(value) == keys for value in numbered):
        return {name: list(value.values()) for name, value in whole.items()}
    return None


def _goes_on(line: str, after: str | None) -> bool:
    """Whether an object does not end with its first line, and the next line is not another object."""
    if after is None or after.lstrip().startswith("{"):
        return False
    try:
        DECODER.raw_decode(line, len(line) - len(line.lstrip()))
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(line.rstrip())
    except ValueError:
        return False
    return False


def _what(error: json.JSONDecodeError) -> str:
    if _trailing_comma(error.doc, error.pos):
        return "a comma too many"
    if error.msg.startswith("Unterminated string"):
        return "a text is not closed that begins"
    return "it ends in the middle" if error.pos >= len(error.doc.rstrip()) else error.msg


def _cure(error: json.JSONDecodeError) -> str:
    if _trailing_comma(error.doc, error.pos):
        return "remove the comma"
    if error.msg.startswith("Expecting property name"):
        return 'write names and texts in double quotes: {"instruction": "…"}'
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
        return "check the end of the line: the file may have been cut off"
    if "escape" in error.msg:
        return 'write a backslash as "\\\\"'
    return "check the line"


def _where(text: str, position: int, column: int | None = None) -> str:
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    row = text[begin : end if end >= 0 else len(text)]
    at = position - begin
    return f"column {column or at + 1}, near {row[max(0, at - 20) : at + 20].strip()!r}"


def _trailing_comma(text: str, position: int) -> bool:
    before = text[:position].rstrip() if position < 200 else text[position - 200 : position].rstrip()
    return before.endswith(",") and (position >= len(text) or text[position : position + 1] in "]}\n")
