"""A list with a cursor: columns that give way by priority when the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.message import Message
from textual.strip import Strip

from llmtui.tui import keys
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, cut, strip_of, visible


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `grow` shares what room is left; of those that do not fit the highest `drop` goes first (0 never)."""

    title: str
    width: int
    right: bool = False
    grow: bool = False
    drop: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a key that stays the same while its cells change, and a piece per column."""

    key: str
    cells: tuple[Piece, ...]


class ListPane(Pane):
    """Rows with a cursor that stays on its row when rows are sorted, filtered or added."""

    BINDINGS = keys.bindings("list")
    SCOPES: tuple[str, ...] = ("list",)

    class Moved(Message):
        """The cursor stands on another row (or the row is gone: key None)."""

        def __init__(self, pane: ListPane, key: str | None) -> None:
            super().__init__()
            self.pane = pane
            self.key = key

        @property
        def control(self) -> ListPane:
            return self.pane

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self.heading: Line = []
        self.note: Line = []
        self.empty: tuple[str, ...] = ()
        self._cursor = 0
        self._top = 0

    # --- what it shows

    def show(self, rows: Sequence[Row]) -> None:
        """Put rows in place; the cursor keeps its row, or its height when that row is gone."""
        key, fresh = self.cursor_key, tuple(rows)
        if fresh != self.rows:
            self.rows = fresh
            index = next((i for i, row in enumerate(fresh) if row.key == key), None)
            self._cursor = index if index is not None else max(0, min(self._cursor, len(fresh) - 1))
            if self.cursor_key != key:
                self.post_message(self.Moved(self, self.cursor_key))
        self.repaint()

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor."""
        return self.rows[self._cursor].key if self.rows else None

    def put_cursor(self, key: str) -> None:
        """Stand on this row, if it is there."""
        for index, row in enumerate(self.rows):
            if row.key == key:
                self._go(index)

    # --- keys

    def action_move(self, by: int) -> None:
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self._cursor + by * max(1, self._page_rows() - 1))

    def action_top(self) -> None:
        self._go(0)

    def action_bottom(self) -> None:
        self._go(len(self.rows) - 1)

    def _go(self, index: int) -> None:
        index = max(0, min(index, len(self.rows) - 1))
        if index != self._cursor:
            self._cursor = index
            self.post_message(self.Moved(self, self.cursor_key))
        self.repaint()

    def _page_rows(self) -> int:
        return max(1, self.size.height - (1 if self.titled else 0) - self._head_rows())

    def _head_rows(self) -> int:
        return 1 if any(column.title for column in self.columns) and self.size.height > 3 else 0

    # --- drawing

    def title(self) -> tuple[Line, Line]:
        place = f"{self._cursor + 1}/{len(self.rows)}" if self.rows else ""
        right: list[Piece] = [*self.note]
        if place:
            right.append((("  " if right else "") + place, "faint"))
        return self.heading, right

    def content(self, width: int, height: int) -> list[Strip]:
        if not self.rows:
            return [strip_of(((" " + text, "faint"),), width) for text in self.empty][:height]
        widths = self._widths(width - 2)
        lines: list[Strip] = []
        if self._head_rows():
            heads = [(column.title, "faint") for column in self.columns]
            lines.append(strip_of([("  ", "text"), *self._line(heads, widths)], width))
        page = max(1, height - len(lines))
        self._top = max(0, min(self._top, self._cursor, len(self.rows) - page))
        self._top = max(self._top, self._cursor - page + 1)
        for index in range(self._top, min(self._top + page, len(self.rows))):
            here = index == self._cursor
            mark = (Drawing.glyphs.cursor + " ", "key") if here else ("  ", "text")
            ground = ("cursor_focused" if self.has_focus else "cursor") if here else "text"
            lines.append(strip_of([mark, *self._line(self.rows[index].cells, widths)], width, ground))
        return lines

    def _line(self, cells: Sequence[Piece], widths: list[int]) -> list[Piece]:
        pieces: list[Piece] = []
        for column, (text, style), width in zip(self.columns, cells, widths, strict=True):
            if width <= 0:
                continue
            shown = cut(text, width)
            blank = " " * (width - cell_len(shown))
            pieces.append((blank + shown + "  " if column.right else shown + blank + "  ", style))
        return pieces

    def _widths(self, room: int) -> list[int]:
        """The width of each column; 0 for those that do not fit."""
        shown = list(range(len(self.columns)))

        def need() -> int:
            return sum(self.columns[i].width + 2 for i in shown) - 2

        while need() > room and any(self.columns[i].drop for i in shown):
            shown.remove(max((i for i in shown if self.columns[i].drop), key=lambda i: self.columns[i].drop))
        widths = [self.columns[i].width if i in shown else 0 for i in range(len(self.columns))]
        growing = [i for i in shown if self.columns[i].grow]
        spare = room - need()
        if growing and spare > 0:
            for i in growing:
                longest = max((cell_len(visible(row.cells[i][0])) for row in self.rows), default=0)
                more = max(0, min(spare, longest - widths[i]))
                widths[i] += more
                spare -= more
        return widths
