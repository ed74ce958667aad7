"""Classification: a label column (ids or texts) becomes the answer of the template.

A row without a label, or with one that is not among the names, is an error: a wrong answer key is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from llmtui.core.data.records import ClassId, Record, Written
from llmtui.core.data.rows import Example, Problems, column_of
from llmtui.core.errors import DataError
from llmtui.core.preset.schema import LabelSection

_ASKING: Final = ("instruction", "prompt", "question", "query")
_TEXTS: Final = ("text", "sentence", "input", "context", "content", "review", "title")
_UNREADABLE: Final = "?"


class Labels:
    """`dataset.label` for a stream of rows.

    Args:
        section: the column and, when its values are not the labels themselves, their names.
    """

    def __init__(self, section: LabelSection) -> None:
        self.column = section.column
        self._names = dict(section.names)
        self._known = set(self._names.values())
        self._found: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The labels there are: those of the preset, else those met so far."""
        return tuple(dict.fromkeys(self._names.values())) if self._names else tuple(self._found)

    def columns(self, present: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
        """`dataset.columns` with the label column as output, and a text column as instruction where there is none.

        Raises:
            DataError: there is no such label column.
        """
        there = list(present)
        if self.column not in there:
            raise DataError(f'there is no column "{self.column}"; columns found: {", ".join(there)}',
                            place="dataset.label.column", hint="name one of them")  # fmt: skip
        mapped = {canonical: name for canonical, name in columns.items() if canonical not in ("output", "completion")}
        if not {"instruction", "prompt"} & mapped.keys():
            asked = mapped.pop("text", None)
            if asked is None and not any(name in there for name in _ASKING):
                asked = mapped.pop("input", None) or next((name for name in _TEXTS if name in there), None)
            if asked is not None:
                mapped["instruction"] = asked
        return {**mapped, "output": self.column}

    def found(self, present: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
        """What `column_of` finds for labelled rows: instruction, output (the label column) and maybe input.

        Raises:
            DataError: there is no such label column, or nothing to ask.
        """
        there = list(present)
        found = column_of(there, self.columns(there, columns))
        if "instruction" not in found:
            raise DataError(
                f"columns found: {', '.join(there)}; labels need a text beside them",
                place="dataset.columns", hint="name its column with dataset.columns: {instruction: …}",
            )  # fmt: skip
        return {canonical: found[canonical] for canonical in ("instruction", "input", "output") if canonical in found}

    def named(self, record: Record, problems: Problems) -> Record:
        """The record with its label's name in the label column; what is no label is noted with its row."""
        value = record.fields.get(self.column)
        name = self._name(value)
        if name is None:
            self._note(value, record.place, problems)
        else:
            self._found.setdefault(name)
        return replace(record, fields={**record.fields, self.column: _UNREADABLE if name is None else name})

    def marked(self, example: Example) -> Example:
        """The example made from a named record, with its output as the label."""
        return replace(example, output="", label=example.output)

    def _name(self, value: Any) -> str | None:
        text = _text(value)
        if not text:
            return None
        if not self._names:
            return value.name or None if isinstance(value, ClassId) else text
        if text in self._names:
            return self._names[text]
        whole = text.removesuffix(".0") if isinstance(value, Written) else text  # a column of ids with gaps is floats
        return self._names.get(whole, text if text in self._known else None)

    def _note(self, value: Any, place: str, problems: Problems) -> None:
        text = _text(value)
        if text is None:
            problems.add(f'the label column "{self.column}" holds a list or an object', place, "name another column")
        elif not text or not self._names:
            problems.add(f'"{self.column}" has no label', place, "add the labels, or remove the rows")
        else:
            problems.add(f'"{self.column}" has a label that dataset.label.names does not know',
                         f"{place}: {text[:40]!r}", self._cure(text))  # fmt: skip

    def _cure(self, text: str) -> str:
        known = ", ".join(f"{key}: {name}" for key, name in list(self._names.items())[:10])
        near = get_close_matches(text, [*self._names, *self._known], n=1)
        return f"{f'did you mean {near[0]}? ' if near else ''}add it to the names ({known}), or mend the rows"


def _text(value: Any) -> str | None:
    """A label as text, empty when there is none; None when it is neither text nor a number."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return None
    text = str(value).strip()
    return "" if isinstance(value, Written) and text.lower() == "nan" else text
