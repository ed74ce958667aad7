"""The line under the form where the name of a field is typed to jump to it."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.strip import Strip

from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.pane import Pane, strip_of


class _Label(Pane, can_focus=False):
    titled = False
    DEFAULT_CSS = "_Label { width: 3; height: 1; }"

    def content(self, width: int, height: int) -> list[Strip]:
        return [strip_of(((" / ", "key"),), width)]


class FindLine(Horizontal):
    """Shown while it is asked.

    Args:
        changed: hears every change, so that the cursor goes along.
        done: gets the text to stay with; None goes back to where it began.
    """

    DEFAULT_CSS = "FindLine { height: 1; display: none; }"

    def __init__(self, changed: Callable[[str], None], done: Callable[[str | None], None]) -> None:
        super().__init__()
        self._changed = changed
        self._done = done
        self.field = TypingField(self._ended, fed=True, id="find-text")

    def compose(self) -> ComposeResult:
        yield _Label()
        yield self.field

    def open(self) -> TypingField:
        """Begin with an empty text; the field to be fed."""
        self.display = True
        self.field.begin("", placeholder="name of a field")
        return self.field

    def on_input_changed(self, event: TypingField.Changed) -> None:
        event.stop()
        if self.display and event.value == self.field.value:
            self._changed(event.value)

    def _ended(self, how: str) -> None:
        if how in ("next", "previous"):
            return
        self.display = False
        text = self.field.value
        if how == "keep" and text:
            self._changed(text)
        self._done(text if how == "keep" and text else None)
