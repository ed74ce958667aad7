"""The line under the form where the name of a field is typed to jump to it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip

from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.pane import Pane, strip_of


class _Label(Pane, can_focus=False):
    titled = False
    DEFAULT_CSS = "_Label { width: 3; height: 1; }"

    def content(self, width: int, height: int) -> list[Strip]:
        return [strip_of(((" / ", "key"),), width)]


class FindLine(Horizontal):
    """Shown while it is asked; every change is told, so that the cursor goes along."""

    DEFAULT_CSS = "FindLine { height: 1; display: none; }"

    class Changed(Message):
        """Another text to look for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """`found` is the text to stay with; None goes back to where it began."""

        def __init__(self, found: str | None) -> None:
            super().__init__()
            self.found = found

    def compose(self) -> ComposeResult:
        yield _Label()
        yield TypingField(id="find-text")

    def open(self) -> None:
        """Begin with an empty text."""
        self.display = True
        self.query_one(TypingField).begin("", placeholder="name of a field")

    def on_input_changed(self, event: TypingField.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def on_typing_field_left(self, event: TypingField.Left) -> None:
        event.stop()
        if event.how in ("next", "previous"):
            event.field.go_on()
            return
        self.display = False
        self.post_message(self.Done(event.field.value if event.how == "keep" and event.field.value else None))
