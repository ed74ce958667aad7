"""A deletion, agreed to by typing the name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.widgets.pane import Line, Piece, visible


class TypeName(Dialog[bool]):
    """Answers True when the name was typed."""

    BINDINGS = [Binding("escape", "close", "close", show=False)]
    HINTS = (("enter", "delete"), ("esc", "keep it"))

    def __init__(self, title: str, lines: Sequence[str], name: str) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._wanted = name

    def heading(self) -> Line:
        return ((self._title, "title"),)

    def text(self) -> Sequence[Piece]:
        return (
            ("", "text"),
            *((line, "text") for line in self._lines),
            ("", "text"),
            (f"Type its name to delete it: {self._wanted}", "warn"),
        )

    def fields(self) -> Iterable[Widget]:
        yield Input(compact=True)

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() in (self._wanted, visible(self._wanted)):
            self.dismiss(True)
            return
        self.query_one(Input).value = ""
        self.app.bell()
