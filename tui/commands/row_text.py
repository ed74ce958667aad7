"""A prepared row for a terminal or a pipe: trained, masked and special text told apart, by sign and by colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from llmtui.tui.commands.output import colours, plain

if TYPE_CHECKING:
    from llmtui.core.data.preview import PreviewRow

_BEGIN, _END = "{+", "+}"  # as `git diff --word-diff` writes what is there
_COLOURS: Final = {"trained": "\x1b[1;32m", "masked": "\x1b[2m", "special": "\x1b[7m"}
_RESET: Final = "\x1b[0m"


def legend() -> str:
    """What the signs mean."""
    return f"{_BEGIN}trained{_END}  masked  [[special token]]"


def row_text(row: PreviewRow) -> str:
    """The row's text, made plain. Signs always, colours on a terminal that has them."""
    coloured = colours()
    parts = []
    inside = False
    for piece in row.pieces:
        if piece.trained != inside:
            parts.append(_BEGIN if piece.trained else _END)
            inside = piece.trained
        text = plain(piece.text)
        text = f"[[{text}]]" if piece.kind == "special" else text
        parts.append(f"{_COLOURS[piece.kind]}{text}{_RESET}" if coloured else text)
    return "".join([*parts, _END if inside else ""])
