"""How long the rows are, with `max_length` marked, and what each batching mode pads."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Final

from textual.strip import Strip

from llmtui.core import words
from llmtui.tui.widgets.bars import bar
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, strip_of, width_of

if TYPE_CHECKING:
    from llmtui.core.data.statistics import Bin, Lengths, Statistics

_LONGEST_BAR: Final = 60
_THIS: Final = " this preset"
_AIRY: Final = 18  # lines from which on blank ones keep the parts apart


class LengthsPane(Pane):
    """Bars as many as there is room for: neighbours are counted together where there is little."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._counted: Statistics | None = None
        self._longer = ""

    def show(self, counted: Statistics, longer: str) -> None:
        """Put statistics in place; `longer` says what becomes of rows beyond `max_length`."""
        self._counted, self._longer = counted, longer
        self.repaint()

    def title(self) -> tuple[Line, Line]:
        return (("Tokens a row", "title"),), ()

    def content(self, width: int, height: int) -> list[Strip]:
        counted = self._counted
        if counted is None:
            return [strip_of(((f" {words.UNKNOWN}", "faint"),), width)]
        lengths, padding = counted.lengths, _padding(counted, width - 2)
        gap: list[Line] = [()] if height >= _AIRY else []
        room = height - 2 - len(padding) - 2 * len(gap)
        bars = _bars(lengths, max(1, room), width - 2, self._longer)
        lines: list[Line] = [_figures(lengths, width - 2), *gap, *bars, *gap, *padding]
        return [strip_of(((" ", "text"), *line), width) for line in lines]


def _figures(lengths: Lengths, width: int) -> Line:
    """Median, 95 % and longest; the mean where it has room."""
    figures = [
        ("half ≤ ", words.count(lengths.median)), ("95% ≤ ", words.count(lengths.p95)),
        ("longest ", words.count(lengths.longest)), ("mean ", f"{lengths.mean:,.0f}"),
    ]  # fmt: skip
    line: list[Piece] = []
    for name, value in figures:
        more: list[Piece] = [("  " if line else "", "text"), (name, "faint"), (value, "text")]
        if width_of(line) + width_of(more) > width:
            break
        line += more
    return line


def merged(bins: Sequence[Bin], most: int, max_length: int) -> list[Bin]:
    """At most `most` bins (but two, when rows stand on both sides of `max_length`): neighbours together."""
    sides = [[b for b in bins if b.last <= max_length], [b for b in bins if b.last > max_length]]
    beyond = min(len(sides[1]), max(1, round(most * len(sides[1]) / max(1, len(bins))))) if sides[1] else 0
    rooms = (max(1, most - beyond), beyond)
    found: list[Bin] = []
    for side, room in zip(sides, rooms, strict=True):
        together = ceil(len(side) / room) if side else 1
        for begin in range(0, len(side), together):
            part = side[begin : begin + together]
            found.append(type(part[0])(part[0].first, part[-1].last, sum(b.rows for b in part)))
    return found


def _bars(lengths: Lengths, most: int, width: int, longer: str) -> list[Line]:
    bins = merged(lengths.bins, most, lengths.max_length)
    names = [f"{words.count(b.first)}-{words.count(b.last)}" for b in bins]
    rows = [words.count(b.rows) for b in bins]
    name_width, rows_width = max(map(len, names)), max(map(len, rows))
    room = max(1, min(_LONGEST_BAR, width - name_width - rows_width - 3))
    highest = max(b.rows for b in bins) or 1
    mark = _mark(lengths, longer)
    lines: list[Line] = []
    marked = False
    for bin_, name, count in zip(bins, names, rows, strict=True):
        beyond = bin_.last > lengths.max_length
        if beyond and not marked:
            lines.append(mark)
            marked = True
        glyph, style = (Drawing.glyphs.others, "warn") if beyond else (Drawing.glyphs.full, "bar_run")
        cells = max(1, round(room * bin_.rows / highest)) if bin_.rows else 0
        lines.append(
            ((name.rjust(name_width), "faint"), (f"  {count.rjust(rows_width)} ", "text"), (glyph * cells, style))
        )
    return lines if marked else [*lines, mark]


def _mark(lengths: Lengths, longer: str) -> Line:
    glyphs = Drawing.glyphs
    head: Piece = (f"{glyphs.rule * 2} max_length {words.count(lengths.max_length)} ", "key")
    if not lengths.longer:
        return (head, ("none longer", "faint"))
    return (head, (f"{words.count(lengths.longer)} longer: {longer}", "warn"))


def _padding(counted: Statistics, width: int) -> list[Line]:
    """A line for each batching mode, the preset's own brought out."""
    most = max(map(len, counted.padding))
    lines: list[Line] = []
    for name, share in counted.padding.items():
        own = name == counted.strategy
        head: list[Piece] = [
            ("" if lines else "padding", "faint"), (" " * (8 if lines else 1), "text"),
            (f"{Drawing.glyphs.cursor if own else ' '} ", "key"), (name.ljust(most), "strong" if own else "text"),
            (f" {share:4.0%} ", "strong" if own else "text"),
        ]  # fmt: skip
        rest = width - width_of(head)
        end: list[Piece] = [(_THIS if rest >= len(_THIS) else " own", "key")] if own else []
        room = min(30, rest - len(_THIS))
        lines.append([*head, *(bar([(share, "bar_others")], room) if room >= 6 else ()), *end])
    return lines
