"""The editor's text field.

Over a slow line keys come in bursts. Textual sends each to the widget that has the focus when the key arrives, not
when the one before has been obeyed, so that in `enter 2 enter j` the 2 would reach the list and the j the number.
In the editor the form therefore keeps the focus, and feeds the field that is open, key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import BindingType
from textual.events import Key, Paste
from textual.suggester import SuggestFromList
from textual.widgets import Input

from llmtui.core.text import safe_text
from llmtui.tui import keys
from llmtui.tui.widgets.pane import Drawing, visible


class TypingField(Input):
    """A line of text. Every printable key types; what is pasted loses its control characters' power.

    Args:
        ended: called when typing ends, with `keep`, `cancel`, `next` or `previous` (the last two keep too).
        fed: another widget has the focus and passes keys on with `feed`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*keys.bindings("field")]
    SCOPES = ("field",)
    DEFAULT_CSS = """
    TypingField {
        border: none; padding: 0; height: 1; width: 1fr; background: $panel; color: $foreground;
        &:focus { border: none; background: $panel; background-tint: $foreground 0%; }
    }
    """

    def __init__(
        self,
        ended: Callable[[str], None],
        *,
        fed: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(compact=True, select_on_focus=False, id=id)
        self.cursor_blink = False  # nothing moves on the screen by itself
        self._ended = ended
        self._fed = fed
        self.can_focus = not fed

    def begin(self, text: str, choices: Sequence[str] = (), placeholder: str = "") -> None:
        """Show a text with the cursor at its end; `choices` are offered as completions."""
        self.suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
        self.placeholder = visible(placeholder)
        with self.prevent(Input.Changed):
            self.value = text
        self.cursor_position = len(text)
        if self._fed:
            self.has_focus = True  # draws the cursor
        else:
            self.screen.set_focus(self)

    # --- keys

    async def feed(self, key: Key) -> None:
        """Obey one key; nothing of it is left to be done when this returns."""
        for binding in self._bindings.key_to_bindings.get(key.key, ()):
            await self.run_action(binding.action)
            return
        character = key.character  # a joiner inside an emoji is not "printable", and no control either
        if character is not None and (key.is_printable or safe_text(character) == character):
            self.replace(character, *sorted(self.selection))

    async def _on_key(self, event: Key) -> None:
        event.stop()
        event.prevent_default()
        await self.feed(event)

    def paste(self, text: str) -> None:
        """Several lines become one: Textual would drop all but the first without a word."""
        line = " ".join(part.strip() for part in text.splitlines() if part.strip())
        if line:
            self.replace(line, *sorted(self.selection))

    def _on_paste(self, event: Paste) -> None:
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def action_leave(self, how: str) -> None:
        self._ended(how)

    async def action_submit(self) -> None:
        self._ended("keep")

    def action_clear_line(self) -> None:
        self.value = ""

    # --- text

    def insert(self, text: str, index: int) -> None:
        super().insert(safe_text(text), index)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(safe_text(text), start, end)

    @property
    def _value(self) -> Text:
        text = self.value
        if not Drawing.glyphs.braille:  # a terminal without UTF-8: as many cells, so that the cursor stands right
            text = "".join(c if c.isascii() else "?" * cell_len(c) for c in text)
        return Text(text, no_wrap=True, overflow="ignore", end="")
