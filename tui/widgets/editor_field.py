"""The editor's text field.

Over a slow line keys come in bursts. Textual sends each to the widget that has the focus when the key arrives, not
when the one before has been obeyed, so that in `enter 2 enter j` the 2 would reach the list and the j the number.
Here a field obeys its keys in order, holds back what came after the end of typing, and gives it on afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.events import Key, Paste
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
        self._ended = False
        self._held: list[Key] = []

    def begin(self, text: str, choices: Sequence[str] = (), placeholder: str = "") -> None:
        """Show a text with the cursor at its end; `choices` are offered as completions."""
        self.suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
        self.placeholder = visible(placeholder)
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        self._ended = False
        self.screen.set_focus(self)

    def go_on(self) -> None:
        """Typing does not end yet: what was typed is refused. Keys that came meanwhile are dropped."""
        self._ended = False
        self._held.clear()

    # --- keys

    async def _on_key(self, event: Key) -> None:
        """Each key is dealt with here, or held; none goes on to the list below."""
        event.stop()
        event.prevent_default()
        if self._ended:
            self._held.append(event)
            return
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            await self.run_action(binding.action)
            return
        character = event.character  # a joiner inside an emoji is not "printable", and no control either
        if character is not None and (event.is_printable or safe_text(character) == character):
            self.replace(character, *sorted(self.selection))

    def on_blur(self) -> None:
        """The focus is elsewhere: what was held is for the widget that has it now."""
        held, self._held = self._held, []
        for key in held:
            self.app.post_message(Key(key.key, key.character))

    def action_leave(self, how: str) -> None:
        self._ended = True
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
