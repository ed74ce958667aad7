"""What a preset is trained on: numbers, lengths, padding, and the rows as the model will see them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget

from llmtui.core import words
from llmtui.core.errors import LlmtuiError
from llmtui.tui import keys
from llmtui.tui.actions import DataFound, PresetDetails
from llmtui.tui.data_facts import data_facts
from llmtui.tui.screens.data_rows import DataRows
from llmtui.tui.widgets.facts_pane import Fact, FactsPane
from llmtui.tui.widgets.lengths_pane import LengthsPane
from llmtui.tui.widgets.row_pane import RowPane

if TYPE_CHECKING:
    from textual.timer import Timer

_SHOW_SECONDS: Final = 0.5  # how often progress is looked at
_LONGER: Final = {"cut": "cut", "drop": "dropped", "split": "split"}


class DataScreen(DataRows, inherit_bindings=False):
    """Opened on a preset that was read. The child that prepares its data is killed when this is left."""

    PLACE = "data"
    BINDINGS = keys.bindings("data")

    class Ready(Message):
        """The data is prepared."""

        def __init__(self, found: DataFound) -> None:
            super().__init__()
            self.found = found

    class Failed(Message):
        """It cannot be."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(self, details: PresetDetails) -> None:
        super().__init__()
        self._details = details
        self._progress: tuple[str, int, int | None] = ("starting", 0, None)
        self._child: subprocess.Popen[str] | None = None
        self._left = False
        self._timer: Timer | None = None

    def body(self) -> Iterable[Widget]:
        counts, row = FactsPane(id="counts"), RowPane(id="row")
        counts.heading = (("Data of ", "title"), (self._details.name, "title"))
        with Container(id="data-body"):
            with Container(id="numbers"):
                yield counts
                yield LengthsPane(id="lengths")
            yield row

    def on_mount(self) -> None:
        self._show_progress()
        self._timer = self.set_interval(_SHOW_SECONDS, self._show_progress)
        self.run_worker(self._prepare, thread=True, group="data", exit_on_error=False)

    def on_resize(self, event: Resize) -> None:
        self.fit(*event.size)

    # --- preparing

    def _prepare(self) -> None:
        loaded = self._details.loaded
        assert loaded is not None
        try:
            found = self.llmtui.actions.data(loaded, self._hear, self._begun)
        except Exception as error:  # shown where the numbers would be
            self.post_message(self.Failed(error))
        else:
            self.post_message(self.Ready(found))

    def _hear(self, phase: str, done: int, total: int | None) -> None:
        self._progress = (phase, done, total)

    def _begun(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        if self._left:
            child.kill()

    def on_unmount(self) -> None:
        self._left = True
        self.stop_search()
        if self._child is not None:
            self._child.kill()  # one that has ended takes no harm

    def _show_progress(self) -> None:
        phase, done, total = self._progress
        shown = words.size if phase == "downloading" else words.count  # bytes, or rows
        amount = f" {shown(done)} of {shown(total)}" if total else ""
        text = f"preparing the data: {phase}{amount} …"
        row = self.query_one(RowPane)
        if text != row.empty:
            row.empty = text
            row.repaint()
            self.query_one("#counts", FactsPane).show_facts([Fact("", text, "faint")], from_top=True)

    def on_data_screen_ready(self, message: Ready) -> None:
        self._stop_timer()
        found, loaded = message.found, self._details.loaded
        assert loaded is not None
        self.query_one("#counts", FactsPane).show_facts(data_facts(found.counted, found.notes), from_top=True)
        self.query_one(LengthsPane).show(found.counted, _LONGER[loaded.preset.dataset.on_long])
        self.take_rows(found.preview)

    def on_data_screen_failed(self, message: Failed) -> None:
        self._stop_timer()
        row, counts = self.query_one(RowPane), self.query_one("#counts", FactsPane)
        row.empty = "there are no rows to look at"
        row.repaint()
        counts.show_facts(_error_facts(message.error), from_top=True)
        self.bring_forward(counts)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()

    # --- keys

    def action_run_preset(self) -> None:
        self.llmtui.run_preset(self._details.path, self._details)

    def action_step_back(self) -> None:
        """Out of the field, the full pane, the search; back to the presets."""
        if not (self.leave_field() or self.leave_full() or self.leave_search()):
            self.dismiss()


def _error_facts(error: Exception) -> list[Fact]:
    if isinstance(error, LlmtuiError):
        facts = [Fact("", f"{error.place}: {error.message}" if error.place else error.message, "bad")]
        return [*facts, Fact("", ""), Fact("cure", error.hint, "key")] if error.hint else facts
    if isinstance(error, OSError):
        return [Fact("", f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), "bad")]
    return [Fact("", f"{type(error).__name__}: {error}", "bad"), Fact("", "this is a fault of llmtui", "faint")]
