"""A prepared row as lines of styled text: trained, masked and special told apart by colour and by a second sign.

Trained text is underlined, special tokens are reversed. Where there is no colour or no UTF-8 there are marks, too:
`{+trained+}` as `git diff --word-diff` writes what is there, and `<<special>>`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells

from llmtui.tui.widgets.pane import Drawing, Line, Piece, visible
from llmtui.tui.widgets.text_pane import words_of

if TYPE_CHECKING:
    from llmtui.core.data.preview import PreviewRow

_BEGIN, _END = "{+", "+}"
_MARK: Final = "key"
HITS: Final = ("hit_trained", "hit_masked")


def marked() -> bool:
    """Whether signs stand in the text, as styles are not enough."""
    return not (Drawing.palette.colour and Drawing.glyphs.braille)


def legend() -> list[Piece]:
    """What the styles and signs mean."""
    if marked():
        return [(f"{_BEGIN}trained{_END}", "trained"), (" masked ", "masked"), ("<<special>>", "special")]
    return [("trained", "trained"), (" masked ", "masked"), ("special", "special")]


def row_lines(row: PreviewRow, wanted: str, width: int) -> list[Line]:
    """The row's text in lines of at most `width` cells; where `wanted` stands it is brought out."""
    lines: list[Line] = []
    for line in _text_lines(row, wanted):
        lines += _wrapped(line, width)
    return lines


def _text_lines(row: PreviewRow, wanted: str) -> Iterator[list[Piece]]:
    """The lines of the text, each with a sign for the newline at its end."""
    line: list[Piece] = []
    for text, style in _pieces(row, wanted):
        if style in ("special", "special_trained", _MARK):
            line.append((text, style))
            continue
        *ended, rest = text.split("\n")
        for part in ended:
            line += [(part, style), (Drawing.glyphs.newline, style)]
            yield line
            line = []
        line.append((rest, style))
    if any(text for text, _ in line):
        yield line


def _pieces(row: PreviewRow, wanted: str) -> Iterator[Piece]:
    hits = _hits(row.text, wanted)
    signs, inside, at = marked(), False, 0
    for piece in row.pieces:
        if signs and piece.trained != inside:
            yield (_BEGIN if piece.trained else _END), _MARK
        inside = piece.trained
        if piece.kind == "special":
            yield (f"<<{piece.text}>>" if signs else piece.text), "special_trained" if piece.trained else "special"
        else:
            yield from _with_hits(piece.text, piece.kind, at, hits)
        at += len(piece.text)
    if signs and inside:
        yield _END, _MARK


def _hits(text: str, wanted: str) -> deque[tuple[int, int]]:
    return deque(match.span() for match in re.finditer(re.escape(wanted), text, re.IGNORECASE) if wanted)


def _with_hits(text: str, style: str, at: int, hits: deque[tuple[int, int]]) -> Iterator[Piece]:
    """The text of a piece that begins at `at`, cut where hits begin and end; hits before it are forgotten."""
    done = 0
    while hits and hits[0][1] <= at:
        hits.popleft()
    for first, last in hits:
        begin, end = max(first - at, done), min(last - at, len(text))
        if begin >= end:
            break
        yield text[done:begin], style
        yield text[begin:end], f"hit_{style}"
        done = end
    yield text[done:], style


def _wrapped(line: Sequence[Piece], width: int) -> Iterator[list[Piece]]:
    """Broken at blanks where there are some."""
    current: list[Piece] = []
    used = 0
    for raw, style in line:
        for word in words_of(visible(raw)):
            cells = cell_len(word)
            rest = word
            if used and used + cells > width and cells <= width // 2:
                if word.startswith(" "):  # it stays at the end of the line, where it is no indent
                    current.append((" " * min(1, width - used), style))
                    rest = word[1:]
                yield current
                current, used = [], 0
            for number, part in enumerate(_parts(rest, width - used, width)):
                if number:
                    yield current
                    current, used = [], 0
                current.append((part, style))
                used += cell_len(part)
    yield current


def _parts(word: str, first: int, width: int) -> list[str]:
    """A word for what is left of a line and for whole ones: long words, and scripts without blanks, fill them."""
    if cell_len(word) <= first:
        return [word]
    head = chop_cells(word, first)[0] if first > 0 else ""
    if cell_len(head) > first:
        head = ""
    return [head, *chop_cells(word[len(head) :], width)]
