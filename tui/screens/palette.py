"""Every action of the place by its name: `:` or ctrl+p."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input

from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.screens.filtering import contains
from llmtui.tui.widgets.list_pane import Column, ListPane, Row
from llmtui.tui.widgets.pane import Line, Piece


@dataclass(frozen=True, slots=True)
class Entry:
    """What can be chosen. `action` is in Textual's words; `argument` is kept apart, since it comes from outside."""

    label: str
    note: str
    action: str
    argument: str = ""


class Palette(Dialog[Entry]):
    """Answers with the entry that was chosen."""

    BINDINGS: ClassVar = [
        Binding("escape", "close", "close", show=False),
        Binding("down,ctrl+n", "move(1)", "down", show=False, priority=True),
        Binding("up", "move(-1)", "up", show=False, priority=True),
    ]
    HINTS = (("type", "to find"), ("enter", "do it"), ("esc", "close"))

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self._entries = entries

    def heading(self) -> Line:
        return (("All actions", "title"),)

    def text(self) -> Sequence[Piece]:
        return ()

    def fields(self) -> Iterable[Widget]:
        yield Input(compact=True)
        pane = ListPane((Column("", 30, grow=True), Column("", 8, grow=True, drop=1)))
        pane.titled = False
        pane.can_focus = False
        pane.styles.height = 12
        pane.empty = ("nothing is called so",)
        yield pane

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._show("")

    def _show(self, wanted: str) -> None:
        rows = [
            Row(str(number), ((entry.label, "text"), (entry.note, "key")))
            for number, entry in enumerate(self._entries)
            if contains(f"{entry.label} {entry.note}", wanted)
        ]
        self.query_one(ListPane).show(rows)

    def action_move(self, by: int) -> None:
        self.query_one(ListPane).action_move(by)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show(event.value)
        self.query_one(ListPane).action_top()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        key = self.query_one(ListPane).cursor_key
        self.dismiss(None if key is None else self._entries[int(key)])
