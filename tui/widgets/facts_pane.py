"""Facts with their names: a name in a column of its own, its text wrapped beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.strip import Strip

from llmtui.tui.widgets.pane import strip_of
from llmtui.tui.widgets.text_pane import TextPane, wrap

_NAME_WIDTH = 11


@dataclass(frozen=True, slots=True)
class Fact:
    """A name (may be empty: the text then takes the whole width) and a text."""

    name: str
    text: str
    style: str = "text"


class FactsPane(TextPane):
    """Scrolls like a text."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.facts: tuple[Fact, ...] = ()
        self._names: list[str] = []
        self._facts_wrapped_for: tuple[int, tuple[Fact, ...]] | None = None

    def show_facts(self, facts: Sequence[Fact], *, from_top: bool) -> None:
        """Put facts in place."""
        self.facts = tuple(facts)
        if from_top:
            self._top = 0
        self.repaint()

    def _wrap(self, width: int) -> None:
        if self._facts_wrapped_for == (width, self.facts):
            return
        self._facts_wrapped_for = (width, self.facts)
        self._names, self._wrapped = [], []
        for fact in self.facts:
            room = width - _NAME_WIDTH if fact.name else width
            for number, part in enumerate(wrap(fact.text, max(8, room))):
                self._names.append(("" if number else fact.name).ljust(_NAME_WIDTH) if fact.name else "")
                self._wrapped.append(((part, fact.style),))

    def content(self, width: int, height: int) -> list[Strip]:
        if not self.facts:
            return [strip_of(((" " + self.empty, "faint"),), width)]
        rows = range(self._top, min(len(self._wrapped), self._top + height))
        return [strip_of(((" " + self._names[row], "faint"), *self._wrapped[row]), width) for row in rows]
