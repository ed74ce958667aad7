"""An error or a notice that needs more than one line."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.widgets.pane import Line, Piece


class MessageDialog(Dialog[None]):
    """Shows a text until it is closed."""

    BINDINGS = [Binding("enter", "close", "close", show=False)]
    HINTS = (("enter", "close"), ("j k", "scroll"))

    def __init__(self, title: str, lines: Sequence[Piece], *, style: str = "title") -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._style = style

    def heading(self) -> Line:
        return ((self._title, self._style),)

    def text(self) -> Sequence[Piece]:
        return (("", "text"), *self._lines, ("", "text"))
