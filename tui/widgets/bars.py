"""Bars made of whole cells, in parts that also differ by character."""

from __future__ import annotations

from collections.abc import Sequence

from llmtui.tui.widgets.pane import Drawing, Piece


def bar(parts: Sequence[tuple[float, str]], width: int) -> list[Piece]:
    """A bar of shares of the whole (0..1 each), the rest free. A part above zero gets at least one cell.

    Args:
        parts: share and style; the second part is drawn with another character than the first.
        width: cells.
    """
    glyphs = Drawing.glyphs
    pieces: list[Piece] = []
    room = width
    for number, (share, style) in enumerate(parts):
        cells = min(room, max(1 if share > 0 else 0, round(min(1.0, max(0.0, share)) * width)))
        if cells:
            pieces.append(((glyphs.full if number == 0 else glyphs.others) * cells, style))
        room -= cells
    if room:
        pieces.append((glyphs.free * room, "bar_free"))
    return pieces
