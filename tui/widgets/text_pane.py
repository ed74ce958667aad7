"""A text that scrolls: long lines are wrapped by cells, the end can be followed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from textual.strip import Strip

from llmtui.tui import keys
from llmtui.tui.widgets.pane import Line, Pane, Piece, strip_of, visible

_LONGEST_LINE = 4000  # characters of one line that are drawn; a log may have a line of a megabyte


class TextPane(Pane):
    """Lines of one style each, wrapped to the width of the pane."""

    BINDINGS = keys.bindings("text")
    SCOPES: tuple[str, ...] = ("text",)

    def __init__(self, *, follow: bool = False, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.heading: Line = []
        self.lines: tuple[Piece, ...] = ()
        self.empty = ""
        self.following = follow
        self._wrapped: list[Line] = []
        self._wrapped_for: tuple[int, tuple[Piece, ...]] | None = None
        self._top = 0

    def show(self, lines: Sequence[Piece], *, from_top: bool = False) -> None:
        """Put a text in place. The place in it stays, or its end does when it is followed."""
        self.lines = tuple(lines)
        if from_top:
            self._top, self.following = 0, False
        self.repaint()

    # --- keys

    def action_scroll(self, by: int) -> None:
        self._go(self._top + by)

    def action_page(self, by: int) -> None:
        self._go(self._top + by * max(1, self._page() - 1))

    def action_top(self) -> None:
        self._go(0)

    def action_bottom(self) -> None:
        self._go(len(self._wrapped))

    def _page(self) -> int:
        return max(1, self.size.height - (1 if self.titled else 0))

    def _go(self, top: int) -> None:
        last = max(0, len(self._wrapped) - self._page())
        self._top = max(0, min(top, last))
        self.following = self._follows and self._top == last
        self.repaint()

    @property
    def _follows(self) -> bool:
        """Whether reaching the end means to stay there."""
        return False

    # --- drawing

    def title(self) -> tuple[Line, Line]:
        page, total = self._page(), len(self._wrapped)
        if total <= page:
            return self.heading, ()
        return self.heading, ((f"{self._top + 1}-{min(total, self._top + page)}/{total}", "faint"),)

    def content(self, width: int, height: int) -> list[Strip]:
        if not self.lines:
            return [strip_of(((" " + self.empty, "faint"),), width)]
        return [strip_of(((" ", "text"), *line), width) for line in self._wrapped[self._top : self._top + height]]

    def _compose_strips(self) -> list[Strip]:
        self._wrap(max(1, self.size.width - 2))
        last = max(0, len(self._wrapped) - self._page())
        self._top = last if self.following else max(0, min(self._top, last))
        return super()._compose_strips()

    def _wrap(self, width: int) -> None:
        known = self._wrapped_for
        if known is not None and known[0] == width and known[1] is self.lines:
            return
        self._wrapped_for = (width, self.lines)
        self._wrapped = [((part, style),) for text, style in self.lines for part in wrap(text, width)]


def wrap(text: str, width: int) -> list[str]:
    """Parts of at most `width` cells, broken at spaces where there are some. Line ends in the text count."""
    parts: list[str] = []
    for raw in text.split("\n"):
        more = len(raw) - _LONGEST_LINE
        line = visible(raw if more <= 0 else f"{raw[:_LONGEST_LINE]} … ({more:,} characters more)")
        if cell_len(line) <= width:
            parts.append(line)
            continue
        parts += _wrap_line(line, width)
    return parts


def _wrap_line(line: str, width: int) -> list[str]:
    parts, current, used = [], "", 0
    for word in words_of(line):
        cells = cell_len(word)
        if used + cells <= width:
            current, used = current + word, used + cells
            continue
        if current.strip():
            parts.append(current.rstrip())
        *whole, current = chop_cells(word.lstrip() if parts else word, width) or [""]
        parts += whole
        used = cell_len(current)
    if current.strip():
        parts.append(current.rstrip())
    return parts or [""]


def words_of(line: str) -> list[str]:
    """Words with the space before them."""
    words: list[str] = []
    start = 0
    for index in range(1, len(line)):
        if line[index] == " " and line[index - 1] != " ":
            words.append(line[start:index])
            start = index
    words.append(line[start:])
    return words
