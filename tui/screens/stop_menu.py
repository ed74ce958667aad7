"""How to stop a run: three ways, the safe one first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from textual.binding import Binding
from textual.widget import Widget

from llmtui.core.runs.state import RunState
from llmtui.tui.actions import StopHow
from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.widgets.list_pane import Column, ListPane, Row
from llmtui.tui.widgets.pane import Line, Piece

_WAYS: tuple[tuple[StopHow, str, str], ...] = (
    ("checkpoint", "After this step, with a checkpoint", "nothing is lost"),
    ("now", "Now, without a checkpoint", "back to the last checkpoint"),
    ("kill", "Kill", "if it no longer answers"),
)


class StopMenu(Dialog[StopHow]):
    """Answers with the way to stop, or None."""

    BINDINGS = [Binding("enter", "choose", "choose", show=False)]
    HINTS = (("enter", "choose"), ("j k", "move"), ("esc", "let it run"))

    def __init__(self, state: RunState) -> None:
        super().__init__()
        self._state = state

    def heading(self) -> Line:
        return (("Stop ", "title"), (self._state.info.name, "strong"))

    def text(self) -> Sequence[Piece]:
        state = self._state
        last = max((c.step for c in state.checkpoints), default=None)
        if last is None:
            kept = "There is no checkpoint yet."
        else:
            kept = f"The last checkpoint is of step {last:,}: {max(0, state.step - last):,} steps since."
        return (("", "text"), (f"Step {state.step:,}. {kept}", "text"), ("", "text"))

    def fields(self) -> Iterable[Widget]:
        pane = ListPane((Column("", 36), Column("", 22, grow=True)))
        pane.titled = False
        pane.styles.height = len(_WAYS) + 1
        pane.show([Row(how, ((title, "text"), (note, "faint"))) for how, title, note in _WAYS])
        yield pane

    def on_mount(self) -> None:
        self.query_one(ListPane).focus()

    def action_choose(self) -> None:
        self.dismiss(cast("StopHow | None", self.query_one(ListPane).cursor_key))
