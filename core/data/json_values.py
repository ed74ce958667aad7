"""JSON text to values, one after the other; scalars keep the characters they are written in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TextIO

from llmtui.core.data.records import Written

_CHUNK: Final = 1 << 18
_KEPT: Final = 200  # characters before the next one, to show where something is wrong
_NEAR_THE_END: Final = 16  # characters: a literal, a number or an escape may be cut off by the end of what is read
_BLANK: Final = re.compile("[ \t\r\n\ufeff]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class DuplicateKeyError(ValueError):
    """One key stands twice in an object."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DuplicateKeyError(f'the key "{twice}" stands twice in one object')
    return result


DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=Written, parse_float=Written, parse_constant=Written, strict=False
)


class JsonText:
    """A stream of JSON text that is decoded value by value; only the value at hand is in memory."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.text = ""
        self.at = 0
        self.ended = False
        self._lines_before = 0
        self._columns_before = 0

    @property
    def line(self) -> int:
        """The line of the next character, from 1."""
        return self.line_of(self.at)

    def line_of(self, position: int) -> int:
        """The line of a character of `text`."""
        return self._lines_before + self.text.count("\n", 0, position) + 1

    def column_of(self, position: int) -> int:
        """The column of a character of `text`, from 1."""
        begin = self.text.rfind("\n", 0, position) + 1
        return position - begin + 1 + (self._columns_before if begin == 0 else 0)

    def peek(self) -> str:
        """The next character that is not blank, empty at the end."""
        while True:
            self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text) or self.ended:
                return self.text[self.at : self.at + 1]
            self._more()

    def value(self) -> tuple[Any, str]:
        """The value that begins at the next character, and its text.

        Raises:
            json.JSONDecodeError: with its position in `text`.
            DuplicateKeyError: a key stands twice.
        """
        while True:
            try:
                value, end = DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self.ended or not _cut_off(error, self.text):
                    raise
                self._more()
                continue
            if end == len(self.text) and not self.ended and not isinstance(value, dict | list):
                self._more()
                continue
            begin, self.at = self.at, end
            return value, self.text[begin:end]

    def _more(self) -> None:
        begin = max(0, self.at - _KEPT)
        newline = self.text.rfind("\n", 0, begin)
        self._lines_before += self.text.count("\n", 0, begin)
        self._columns_before = begin - newline - 1 if newline >= 0 else self._columns_before + begin
        rest = self.text[begin:]
        chunk = self._file.read(max(_CHUNK, len(rest)))  # doubled, so that a long value is not read over and over
        self.text, self.at = rest + chunk, self.at - begin
        self.ended = not chunk


def _cut_off(error: json.JSONDecodeError, text: str) -> bool:
    return error.msg.startswith("Unterminated string") or error.pos >= len(text) - _NEAR_THE_END


def may_hold_surrogates(text: str) -> bool:
    """Whether a JSON text escapes half of a pair somewhere, as far as can be told quickly."""
    return "\\ud" in text or "\\uD" in text


def without_surrogates(value: Any) -> tuple[Any, int]:
    """A value with U+FFFD for every half of a surrogate pair, which no encoding can hold, and how many there were."""
    found = 0

    def mend(part: Any) -> Any:
        nonlocal found
        if isinstance(part, str):
            mended, count = _SURROGATE.subn("\ufffd", part)
            found += count
            return mended if count else part
        if isinstance(part, list):
            return [mend(item) for item in part]
        if isinstance(part, dict):
            return {mend(key): mend(item) for key, item in part.items()}
        return part

    return mend(value), found


def numbered_lines(file: TextIO) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, numbered from 1."""
    for number, line in enumerate(file, 1):
        if not line.isspace():
            yield number, line
