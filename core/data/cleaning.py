"""The steps of `dataset.clean`: row by row, always in the same order, each with its count.

The order is NFKC, lower case, control characters, symbols, then lengths, then duplicates: folding full-width forms
first lets `symbols` name the plain character, and what is equal or long is judged as it will be trained on.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from llmtui.core.data.content import content_hash, texts_of
from llmtui.core.data.rows import Example
from llmtui.core.preset.schema import CleanSection

# Cc without tab, line feed and carriage return, which are part of a text's shape.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
Step = Callable[[str], str]

EMPTY: Final = "empty after cleaning"
SHORT: Final = "shorter than clean.min_length"
LONG: Final = "longer than clean.max_length"
DUPLICATE: Final = "duplicate"


class Cleaner:
    """Cleans one stream of rows. A label is never changed; duplicates are found within the stream.

    Args:
        section: `dataset.clean`; with everything off, rows pass as they are.
    """

    def __init__(self, section: CleanSection) -> None:
        self._steps = dict(_steps(section))
        self._shortest, self._longest = section.min_length or 0, section.max_length
        self._seen = SeenRows() if section.duplicates else None
        self.counts: dict[str, int] = dict.fromkeys(self._steps, 0)
        """Rows changed by step (`nfkc`, `lower`, `control_characters`, `symbols`), 0 when it changed none."""
        self.dropped: dict[str, int] = {}
        """Rows dropped by reason."""

    def clean(self, example: Example) -> Example | str:
        """The cleaned row, or the reason why it is dropped. Both are counted."""
        cleaned = example
        for name, step in self._steps.items():
            changed = _with_texts(cleaned, step)
            self.counts[name] += changed != cleaned
            cleaned = changed
        reason = self._refused(cleaned, was=example)
        if reason:
            self.dropped[reason] = self.dropped.get(reason, 0) + 1
        return reason or cleaned

    def _refused(self, example: Example, was: Example) -> str:
        if example is not was and _says_nothing(example):
            return EMPTY
        if self._shortest or self._longest is not None:
            length = sum(map(len, texts_of(example)))
            if length < self._shortest:
                return SHORT
            if self._longest is not None and length > self._longest:
                return LONG
        if self._seen is not None and not self._seen.add(content_hash(example)):
            return DUPLICATE
        return ""


def _steps(section: CleanSection) -> Iterator[tuple[str, Step]]:
    if section.nfkc:
        yield "nfkc", lambda text: unicodedata.normalize("NFKC", text)
    if section.lower:
        yield "lower", str.lower
    if section.control_characters:
        yield "control_characters", lambda text: _CONTROLS.sub("", text)
    if section.symbols:
        unwanted = re.compile(f"[{re.escape(section.symbols)}]+")
        yield "symbols", lambda text: unwanted.sub("", text)


def _with_texts(example: Example, step: Step) -> Example:
    if example.turns:
        return replace(example, turns=tuple(replace(turn, content=step(turn.content)) for turn in example.turns))
    if example.text is not None:
        return replace(example, text=step(example.text))
    return replace(
        example, instruction=step(example.instruction), input=step(example.input), output=step(example.output)
    )


def _says_nothing(example: Example) -> bool:
    """Whether there is nothing to ask or nothing to learn."""
    if example.turns:
        return not any(turn.content for turn in example.turns if turn.role == "assistant")
    if example.text is not None:
        return not example.text
    return not (example.output or example.label) or not (example.instruction or example.input)


class SeenRows:
    """Which contents were there before, at about 32 bytes a row (a set of objects takes three times that).

    An open hash table over the two halves of 128-bit hashes; half of it is free at least.
    """

    def __init__(self) -> None:
        self._resize(1 << 10)
        self._count = 0

    def _resize(self, slots: int) -> None:
        self._mask = slots - 1
        self._first = array("Q", bytes(8 * slots))
        self._second = array("Q", bytes(8 * slots))

    def __len__(self) -> int:
        return self._count

    def add(self, content: bytes) -> bool:
        """Note a row's 16-byte hash; False when it was there before."""
        first = int.from_bytes(content[:8], "little") or 1  # 0 marks a free slot
        if not self._put(first, int.from_bytes(content[8:], "little")):
            return False
        self._count += 1
        if self._count * 2 > self._mask:
            self._grow()
        return True

    def _put(self, first: int, second: int) -> bool:
        slot = first & self._mask
        while self._first[slot]:
            if self._first[slot] == first and self._second[slot] == second:
                return False
            slot = (slot + 1) & self._mask
        self._first[slot], self._second[slot] = first, second
        return True

    def _grow(self) -> None:
        firsts, seconds = self._first, self._second
        self._resize(2 * len(firsts))
        for first, second in zip(firsts, seconds, strict=True):
            if first:
                self._put(first, second)
