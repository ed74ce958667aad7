"""Beside the form: what the field is, what its value means, what is wrong; and what the whole preset comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from textual.strip import Strip

from llmtui.tui.widgets.editor_rows import FieldRow, FormRow, SectionRow
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, cut, strip_of
from llmtui.tui.widgets.text_pane import wrap

_BEFORE_CELLS: Final = 40


class NotePane(Pane):
    """Lines of text under a title, wrapped; what does not fit is cut, and the title says so."""

    def __init__(self, heading: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.can_focus = False
        self.heading = heading
        self.right: Line = ()
        self.lines: tuple[Piece, ...] = ()
        self._cut = False

    def show(self, lines: Sequence[Piece], heading: str | None = None, right: Line = ()) -> None:
        """Put lines in place; only what differs is drawn."""
        self.lines, self.right = tuple(lines), right
        if heading is not None:
            self.heading = heading
        self.repaint()

    def title(self) -> tuple[Line, Line]:
        return ((self.heading, "title"),), self.right

    def content(self, width: int, height: int) -> list[Strip]:
        parts = [(part, style) for text, style in self.lines for part in wrap(text, max(1, width - 2))]
        strips = [strip_of(((" ", "text"), part), width) for part in parts[:height]]
        if len(parts) > height > 0:
            strips[-1] = strip_of(((" ", "text"), (Drawing.glyphs.ellipsis, "faint")), width)
        return strips


@dataclass(frozen=True, slots=True)
class FieldNotes:
    """What the help shows beside the row itself: the sentence about the effect, the cure, the value at opening."""

    effect: str = ""
    problem: str = ""
    cure: str = ""
    later: bool = False
    before: str = ""


def help_lines(row: FormRow, notes: FieldNotes) -> list[Piece]:
    """The help of one row, the most urgent first."""
    glyphs = Drawing.glyphs
    lines: list[Piece] = []
    if notes.problem:
        sign, style = ("!", "warn") if notes.later else (glyphs.bad_point, "bad")
        lines.append((f"{sign} {notes.problem}", style))
        if notes.cure:
            lines.append((f"{glyphs.arrow} {notes.cure}", "strong"))
    if isinstance(row, SectionRow):
        lines.append((row.help, "text"))
        lines.append((f"space or enter: {'leave it out' if row.on else 'write it into the file'}", "faint"))
        return lines
    if notes.effect:
        lines.append((f"= {notes.effect}", "busy"))
    if row.help:
        lines.append((row.help, "text"))
    known = [f"one of: {'  '.join(row.choices)}"] if row.choices else []
    if row.accepts:
        known.append(row.accepts)
    if known:
        lines.append(("  ".join(known), "faint"))
    unit = f" {row.unit}" if row.unit and row.default[:1].isdigit() else ""
    default = f"default: {row.default}{unit}"
    if notes.before and notes.before != row.text:
        default += f"  {glyphs.dot}  was: {cut(notes.before, _BEFORE_CELLS)}"
    lines.append((default, "faint"))
    return lines


def title_of(row: FormRow) -> str:
    """The heading of the help."""
    return row.key if isinstance(row, FieldRow) else f"{row.key} (section)"
