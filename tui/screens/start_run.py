"""Before a run starts: what it will do, whether it fits, what is wrong. Enter starts it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widget import Widget

from llmtui.tui.actions import PresetDetails
from llmtui.tui.screens.dialog import Dialog, KeyLine
from llmtui.tui.widgets.facts_pane import FactsPane


class DialogFacts(FactsPane):
    """Facts as high as they need to be."""

    DEFAULT_CSS = "DialogFacts { height: auto; max-height: 1fr; }"

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Textual asks how high the facts are at this width."""
        self._wrap(max(1, width - 2))
        return len(self._wrapped) + 2


class StartDialog(Dialog[bool]):
    """Answers True to start. With problems there is nothing to confirm."""

    BINDINGS = [Binding("enter", "start", "start", show=False)]
    WIDE = True

    def __init__(self, details: PresetDetails) -> None:
        super().__init__()
        self._details = details

    def compose(self) -> ComposeResult:
        self.mark_ascii()
        facts = DialogFacts()
        blocked = bool(self._details.problems)
        facts.heading = [("Cannot start " if blocked else "Start ", "title"), (self._details.name, "strong")]
        facts.facts = self._details.facts
        hints = (("esc", "close"),) if blocked else (("enter", "start"), ("j k", "scroll"), ("esc", "not now"))
        with Vertical(id="box", classes="-wide"):
            yield facts
            yield KeyLine(hints)

    def fields(self) -> Iterable[Widget]:
        return ()

    def on_mount(self) -> None:
        self.set_focus(self.query_one(DialogFacts))

    def action_start(self) -> None:
        self.dismiss(None if self._details.problems else True)
