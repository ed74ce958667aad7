"""The ground of every pane: a title rule, lines of styled text, and a repaint of changed cells only.

All text that reaches the terminal passes `strip_of`: made safe, translated for terminals without UTF-8,
cut and filled by cells. No markup is read anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from llmtui.core.text import safe_text
from llmtui.tui.glyphs import UNICODE, Glyphs, to_ascii
from llmtui.tui.theme import Palette

Piece = tuple[str, str]
"""A text and the name of its style."""
Line = Sequence[Piece]

_GROUND: Final = "text"


class Drawing:
    """What every widget needs to draw: the styles and the characters of this terminal."""

    palette: Palette = Palette()
    glyphs: Glyphs = UNICODE
    strict = False
    """Tests let a pane's failure through."""

    @classmethod
    def set_up(cls, *, colour: bool, glyphs: Glyphs) -> None:
        """Called once by the app before anything is drawn."""
        cls.palette = Palette(colour)
        cls.glyphs = glyphs


def visible(text: str) -> str:
    """Text as this terminal can show it: control characters written out, ASCII where nothing else is shown."""
    text = safe_text(text)
    return text if Drawing.glyphs.braille else to_ascii(text)


def width_of(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(visible(text)) for text, _ in line)


def cut(text: str, width: int) -> str:
    """At most `width` cells, with an ellipsis where something was cut; never half a wide character."""
    text = visible(text)
    if cell_len(text) <= width:
        return text
    return (
        set_cell_size(text, width - 1).rstrip() + Drawing.glyphs.ellipsis
        if width > 1
        else set_cell_size(text, max(0, width))
    )


def strip_of(line: Line, width: int, ground: str = _GROUND) -> Strip:
    """One line of exactly `width` cells. `ground` is the style below all pieces."""
    palette = Drawing.palette
    base = palette.ground + palette[ground]
    segments: list[Segment] = []
    room = width
    for raw, style in line:
        text = visible(raw)
        cells = cell_len(text)
        if cells > room:
            text, cells = set_cell_size(text, room), room
        if text:
            segments.append(Segment(text, _combined(base, palette[style], ground)))
        room -= cells
        if room <= 0:
            break
    if room > 0:
        segments.append(Segment(" " * room, base))
    return Strip(segments, width)


def _combined(base: Style, style: Style, ground: str) -> Style:
    if ground != _GROUND and style.bgcolor is None:  # the cursor's line keeps its own background
        return Style.combine([style, base]) if ground == "cursor_focused" else base + style
    return base + style


def rule(title: Line, right: Line, width: int, *, focused: bool) -> Strip:
    """A title set into a line; the right part goes first when there is no room."""
    glyphs = Drawing.glyphs
    dash = glyphs.rule_focused if focused else glyphs.rule
    style = "rule_focused" if focused else "rule"
    left_cells, right_cells = width_of(title) + 4, width_of(right) + 3 if right else 0
    if left_cells + right_cells > width:
        spare = max(0, width - left_cells - 3)
        right = _cut_line(right, spare) if spare >= 8 else ()
        right_cells = width_of(right) + 3 if right else 0
    title = _cut_line(title, max(0, width - 4))
    pieces: list[Piece] = [(dash * 2 + " ", style), *title, (" ", style)]
    fill = width - width_of(pieces) - right_cells
    pieces.append((dash * max(0, fill), style))
    if right:
        pieces += [(" ", style), *right, (" " + dash, style)]
    return strip_of(pieces, width)


def _cut_line(line: Line, width: int) -> list[Piece]:
    out: list[Piece] = []
    for text, style in line:
        cells = cell_len(visible(text))
        if cells > width:
            if width > 0:
                out.append((cut(text, width), style))
            return out
        out.append((text, style))
        width -= cells
    return out


class Pane(Widget, can_focus=True):
    """A part of a place. Subclasses give `title` and `content`; `repaint` compares and shows the difference."""

    DEFAULT_CSS = "Pane { width: 1fr; height: 1fr; }"
    SCOPES: tuple[str, ...] = ()
    """The scopes of the key table that this pane answers to, innermost first."""
    titled = True

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._strips: list[Strip] = []
        self._shown: object = None

    def is_news(self, *inputs: object) -> bool:
        """Whether this differs from what was last asked about: what is shown already need not be made again."""
        news = inputs != self._shown
        self._shown = inputs
        return news

    def title(self) -> tuple[Line, Line]:
        """Left and right part of the title rule."""
        return (), ()

    def content(self, width: int, height: int) -> list[Strip]:
        """The lines below the title; fewer than `height` are filled up."""
        return []

    def _compose_strips(self) -> list[Strip]:
        width, height = self.size
        if width <= 0 or height <= 0:
            return []
        room = height - 1 if self.titled else height
        strips = self._content_or_reason(width, room)[:room] if room > 0 else []
        if self.titled:
            left, right = self.title()
            name = "title_focused" if self.has_focus else "title"
            left = [(text, name if style == "title" else style) for text, style in left]
            strips.insert(0, rule(left, right, width, focused=self.has_focus))
        strips += [strip_of((), width)] * (height - len(strips))
        return strips

    def _content_or_reason(self, width: int, height: int) -> list[Strip]:
        """A pane that cannot draw what it was given says so; the others, and the screen, live on."""
        try:
            return self.content(width, height)
        except Exception as error:
            if Drawing.strict:
                raise
            text = f" this pane could not be drawn ({type(error).__name__}: {error}); the run is not touched by it"
            return [strip_of(((text, "bad"),), width)]

    def repaint(self) -> None:
        """Draw anew, and have only the cells that differ sent to the terminal."""
        if not self.is_mounted:
            return
        old, new = self._strips, self._compose_strips()
        self._strips = new
        if len(old) != len(new):
            self.refresh()
            return
        lines = enumerate(zip(old, new, strict=True))
        changed = [region for y, (a, b) in lines if a != b and (region := _changed(y, a, b)).width]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line."""
        width, height = self.size
        if len(self._strips) != height or (self._strips and self._strips[0].cell_length != width):
            self._strips = self._compose_strips()
        return self._strips[y] if y < len(self._strips) else Strip.blank(width, Drawing.palette.ground)

    def on_mount(self) -> None:
        self.repaint()

    def on_resize(self) -> None:
        self.repaint()

    def on_focus(self) -> None:
        self.call_next(self.repaint)  # Textual changes `has_focus` after this handler

    def on_blur(self) -> None:
        self.call_next(self.repaint)


def _changed(y: int, old: Strip, new: Strip) -> Region:
    """The cells of a line between its first and last difference; none when only its segments are cut otherwise."""
    before, after = _cells(old), _cells(new)
    width = new.cell_length
    if len(before) != len(after):
        return Region(0, y, width, 1)
    begin, end = 0, len(after)
    while begin < end and before[begin] == after[begin]:
        begin += 1
    if begin == end:
        return Region(0, y, 0, 0)
    while end > begin and before[end - 1] == after[end - 1]:
        end -= 1
    # never start or end within a wide character
    while begin > 0 and (not after[begin][0] or not before[begin][0]):
        begin -= 1
    while end < len(after) and (not after[end][0] or not before[end][0]):
        end += 1
    return Region(begin, y, end - begin, 1)


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    """One entry per cell; the second cell of a wide character is empty text."""
    cells: list[tuple[str, Style | None]] = []
    for text, style, _ in strip:
        if text.isascii():
            cells.extend((character, style) for character in text)
            continue
        for character in text:
            wide = cell_len(character)
            cells.extend(((character, style), *((("", style),) * (wide - 1))) if wide else ())
            if not wide and cells:
                cells[-1] = (cells[-1][0] + character, style)
    return cells
