"""A grid of dots that becomes characters: eight dots to a cell in braille, two in ASCII."""

from __future__ import annotations

from typing import Final

# Bits of a braille cell by dot row and dot column (Unicode, block 2800).
_BRAILLE: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def _masks(bits: tuple[tuple[int, ...], ...]) -> list[list[list[int]]]:
    """By dot column, first and last dot row of a cell: the bits between them."""
    rows = range(len(bits))
    return [
        [[sum(bits[y][x] for y in rows if first <= y <= last) for last in rows] for first in rows]
        for x in range(len(bits[0]))
    ]


_MASKS: Final = {True: _masks(_BRAILLE), False: _masks(((0x01,), (0x02,)))}


class Canvas:
    """Dots of one layer. (0, 0) is the top left dot.

    Args:
        width: cells.
        height: cells.
        braille: 2 × 4 dots to a cell, otherwise 1 × 2.
    """

    def __init__(self, width: int, height: int, *, braille: bool) -> None:
        self.width = width
        self.height = height
        self.braille = braille
        self.across, self.down = (2, 4) if braille else (1, 2)
        self.dots_wide = width * self.across
        self.dots_high = height * self.down
        self._cells = bytearray(width * height)
        self._masks = _MASKS[braille]

    def dot(self, x: int, y: int) -> None:
        """Set one dot; outside the canvas nothing happens."""
        if 0 <= x < self.dots_wide and 0 <= y < self.dots_high:
            column, row = x // self.across, y // self.down
            self._cells[row * self.width + column] |= self._bit(x, y)

    def vertical(self, x: int, y0: int, y1: int) -> None:
        """Set all dots of a column between two heights, both included."""
        if not 0 <= x < self.dots_wide:
            return
        top, bottom = max(0, min(y0, y1)), min(self.dots_high - 1, max(y0, y1))
        column, side, down, masks = x // self.across, x % self.across, self.down, self._masks
        for row in range(top // down, bottom // down + 1):
            first, last = max(top - row * down, 0), min(bottom - row * down, down - 1)
            if first <= last:
                self._cells[row * self.width + column] |= masks[side][first][last]

    def line(self, x0: int, y0: int, x1: int, y1: int) -> None:
        """Join two points with x0 ≤ x1: each column gets the heights that the line has in it."""
        if x1 <= x0:
            self.vertical(x0, y0, y1)
            return
        span, before = x1 - x0, y0
        for x in range(x0, x1 + 1):
            middle = y0 + (y1 - y0) * (2 * (x - x0) + 1) // (2 * span) if x < x1 else y1
            self.vertical(x, before, middle)
            before = middle

    def _bit(self, x: int, y: int) -> int:
        return _BRAILLE[y % 4][x % 2] if self.braille else 1 << (y % 2)

    def character(self, column: int, row: int) -> str:
        """The character of a cell, empty when it has no dot. ASCII: `.` low, `'` high, `:` both."""
        bits = self._cells[row * self.width + column]
        if not bits:
            return ""
        return chr(0x2800 + bits) if self.braille else ("", "'", ".", ":")[bits]
