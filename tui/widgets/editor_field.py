"""The one text field of the editor: it lies over the value of the row that is being typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.events import Paste
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input

from llmtui.core.text import safe_text
from llmtui.tui import keys
from llmtui.tui.widgets.pane import visible


class TypingField(Input):
    """A line of text. Every printable key types; what is pasted loses its control characters' power."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.bindings("field")]
    SCOPES = ("field",)
    DEFAULT_CSS = """
    TypingField {
        border: none; padding: 0; height: 1; width: 1fr; background: $panel; color: $foreground;
        &:focus { border: none; background: $panel; background-tint: $foreground 0%; }
    }
    """

    class Left(Message):
        """Typing ended. `how` is `keep`, `cancel`, `next` or `previous` (the last two keep too)."""

        def __init__(self, field: TypingField, how: str) -> None:
            super().__init__()
            self.field = field
            self.how = how

        @property
        def control(self) -> TypingField:
            return self.field

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(compact=True, select_on_focus=False, id=id)
        self.cursor_blink = False  # nothing moves on the screen by itself

    def begin(self, text: str, choices: Sequence[str] = (), placeholder: str = "") -> None:
        """Show a text with the cursor at its end; `choices` are offered as completions."""
        self.suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
        self.placeholder = visible(placeholder)
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self.focus()

    def action_leave(self, how: str) -> None:
        self.post_message(self.Left(self, how))

    async def action_submit(self) -> None:
        self.action_leave("keep")

    def action_clear_line(self) -> None:
        self.value = ""

    def insert(self, text: str, index: int) -> None:
        super().insert(safe_text(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(safe_text(text), start, end)

    def _on_paste(self, event: Paste) -> None:
        """Several lines become one: Textual would drop all but the first without a word."""
        event.stop()
        event.prevent_default()
        text = " ".join(part.strip() for part in event.text.splitlines() if part.strip())
        if text:
            self.replace(text, *sorted(self.selection))

    @property
    def _value(self) -> Text:
        return Text(self.value, no_wrap=True, overflow="ignore", end="")
