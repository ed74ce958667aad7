"""Records to examples: every common shape, whatever file it comes from; bad values named with their row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from llmtui.core.data.columns import CANONICAL, column_of
from llmtui.core.data.conversations import Turn, turns_of
from llmtui.core.data.problems import Problems
from llmtui.core.data.records import Part, Record
from llmtui.core.errors import DataError

if TYPE_CHECKING:
    from llmtui.core.data.labels import Labels

__all__ = ["CANONICAL", "Example", "Problems", "RowReader", "Turn", "column_of"]

_MESSAGES: Final = ("messages", "conversations")
_LOOKED_AT: Final = 1000  # records whose columns are looked at where nothing says which there are
_UNREADABLE: Final = "?"
_KINDS: Final = {"list": "a list", "dict": "an object", "bytes": "binary data"}


@dataclass(frozen=True, slots=True)
class Example:
    """One row to learn from: an instruction with its output, a conversation, or plain text."""

    place: str
    instruction: str = ""
    input: str = ""
    output: str = ""
    turns: tuple[Turn, ...] = ()
    text: str | None = None
    label: str | None = None


class RowReader:
    """Reads a stream of records as examples; what is wrong with rows is collected and told at the end.

    Args:
        columns: `dataset.columns`.
        labels: makes a label column the answers.
    """

    def __init__(self, columns: Mapping[str, str], labels: Labels | None = None) -> None:
        self._columns = columns
        self._labels = labels
        self._part: Part | None = None
        self._names: dict[str, None] = {}
        self._found: dict[str, str] = {}
        self.problems = Problems()
        self.dropped: Counter[str] = Counter()
        self.rows = 0

    def read(self, records: Iterable[Record]) -> Iterator[Example | None]:
        """An example for every record, None where it is dropped (counted by reason) or wrong.

        Every file of a source may have columns of its own, and rows may bring columns that the first ones lack.

        Raises:
            DataError: there is no such column, or no known shape fits.
        """
        labels = self._labels
        for record in _with_parts(records):
            self.rows += 1
            self._look(record)
            named = labels.named(record, self.problems) if labels is not None else record
            example = _example(named, self._found, self.problems)
            if isinstance(example, str):
                self.dropped[example] += 1
                yield None
            else:
                yield labels.marked(example) if labels is not None else example

    def finish(self) -> None:
        """Raise a DataError about all rows that are wrong."""
        self.problems.raise_if_any()

    def _look(self, record: Record) -> None:
        """Find out again which column is which, where a file begins or a row has a column not met before."""
        if record.part is not self._part and record.part is not None:
            self._part, self._names = record.part, dict.fromkeys(record.part.names)
        elif record.fields.keys() <= self._names.keys():
            return
        self._names.update(dict.fromkeys(record.fields))
        try:
            if self._labels is not None:
                self._found = self._labels.found(self._names, self._columns)
            else:
                self._found = column_of(self._names, self._columns)
        except DataError as error:
            file = self._part.name if self._part is not None else ""
            hint = error.hint
            if hint.startswith("map them") and file.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
                hint += "; if they are a row, add a first line such as instruction,output"
            raise DataError(error.message, place=file or error.place, hint=hint) from None


def _with_parts(records: Iterable[Record]) -> Iterator[Record]:
    """The records, with the columns of the first thousand for those that do not say where they come from."""
    stream = iter(records)
    for record in stream:
        if record.part is not None:
            yield record
            continue
        first = [record, *islice(stream, _LOOKED_AT - 1)]
        part = Part("", tuple(dict.fromkeys(name for other in first for name in other.fields)))
        for other in chain(first, stream):
            yield Record(other.place, other.fields, part) if other.part is None else other


def _example(record: Record, found: Mapping[str, str], problems: Problems) -> Example | str:
    """The example, or the reason why the row is dropped."""
    said = _conversation(record.fields, found)
    if said is not None:
        system = _text(record, found["system"], problems) if "system" in found else ""
        turns = turns_of(said, system, record.place, problems)
        if turns is not None and not any(t.role == "assistant" and t.content for t in turns):
            return "no answer"
        return Example(record.place, turns=tuple(turns or ()))
    if "instruction" in found and "output" in found:
        output = _text(record, found["output"], problems)
        instruction = _text(record, found["instruction"], problems)
        extra = _text(record, found["input"], problems) if "input" in found else ""
        if output and (instruction or extra):
            return Example(record.place, instruction=instruction, input=extra, output=output)
        if "text" not in found or output or instruction:
            return "no instruction" if output else "no output"
    if "text" in found:
        text = _text(record, found["text"], problems)
        return Example(record.place, text=text) if text else "no text"
    return "no messages"


def _conversation(fields: Mapping[str, Any], found: Mapping[str, str]) -> Any:
    """A row's messages: of their column (one file may hold both spellings), or a prompt and a completion of turns."""
    if "messages" in found:
        mapped = fields.get(found["messages"])
        if mapped is None:
            mapped = next((fields[s] for s in _MESSAGES if fields.get(s) is not None), None)
        if mapped is not None and mapped != "":
            return mapped
    if "instruction" in found and "output" in found:
        asked, answered = fields.get(found["instruction"]), fields.get(found["output"])
        if all(isinstance(part, list) and part and isinstance(part[0], dict) for part in (asked, answered)):
            return [*(asked or ()), *(answered or ())]
    return None


def _text(record: Record, column: str, problems: Problems) -> str:
    value = record.fields.get(column)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    problems.add(f'"{column}" is {_kind(value)}, not text', record.place, "write it as text, or map another column")
    return _UNREADABLE


def _kind(value: Any) -> str:
    return _KINDS.get(type(value).__name__, type(value).__name__)
