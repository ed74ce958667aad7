"""One prepared row: where it came from, how long it is, and its text as the model will see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.strip import Strip

from llmtui.core import words
from llmtui.tui.row_lines import HITS, legend, row_lines
from llmtui.tui.widgets.pane import Drawing, Line, Piece, strip_of, visible, width_of
from llmtui.tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from llmtui.core.data.preview import PreviewRow


class RowPane(TextPane):
    """Scrolls like a text; its first line stays."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.note: Line = ()
        self._row: PreviewRow | None = None
        self._rows = 0
        self._wanted = ""
        self._to_hit = False
        self._row_wrapped_for: object = None

    def show_row(self, row: PreviewRow | None, rows: int, wanted: str) -> None:
        """Put a row in place, one of `rows`; a searched text is brought out and scrolled to."""
        if (row, wanted) != (self._row, self._wanted):
            self._top, self._to_hit = 0, bool(wanted)
        self._row, self._rows, self._wanted = row, rows, wanted
        self.repaint()

    def title(self) -> tuple[Line, Line]:
        row = self._row
        if row is None:
            return (("Rows", "title"),), self.note
        name = {"train": "Training", "val": "Validation"}[row.side]
        left: list[Piece] = [(f"{name} row {words.count(row.index + 1)}/{words.count(self._rows)}", "title")]
        right: list[Piece] = [*self.note, ("  " if self.note else "", "text"), *legend()]
        page, total = self._page(), len(self._wrapped)
        if total > page:
            right.append((f"  {self._top + 1}-{min(total, self._top + page)}/{total}", "faint"))
        return left, right

    def content(self, width: int, height: int) -> list[Strip]:
        if self._row is None:
            return [strip_of(((" " + self.empty, "faint"),), width)]
        shown = self._wrapped[self._top : self._top + max(0, height - 1)]
        lines: list[Line] = [_facts(self._row, width - 2), *shown]
        return [strip_of(((" ", "text"), *line), width) for line in lines]

    def _page(self) -> int:
        return max(1, super()._page() - 1)

    def _wrap(self, width: int) -> None:
        wrapped_for = (width, self._row, self._wanted, Drawing.glyphs.braille, Drawing.palette.colour)
        if wrapped_for == self._row_wrapped_for:
            return
        self._row_wrapped_for = wrapped_for
        self._wrapped = row_lines(self._row, self._wanted, width) if self._row is not None else []
        if self._to_hit:
            hits = (number for number, line in enumerate(self._wrapped) if any(style in HITS for _, style in line))
            self._top, self._to_hit = max(0, next(hits, 0) - 1), False


def _facts(row: PreviewRow, width: int) -> Line:
    """Place and counts; the place gives way at its beginning, as its end is the line."""
    counts: list[Piece] = [("  cut", "warn")] * row.cut + [("  no end token", "warn")] * (not row.ended)
    counts.append((f"  {words.count(row.tokens)} tokens, {words.count(row.trained)} trained", "text"))
    if row.label is not None:
        counts.append((f"  label {row.label}", "key"))
    return [(_end_of(row.place, max(8, width - width_of(counts))), "strong"), *counts]


def _end_of(text: str, width: int) -> str:
    text = visible(text)
    if cell_len(text) <= width:
        return text
    while cell_len(text) > width - 1:
        text = text[1:]
    return Drawing.glyphs.ellipsis + text
