"""The row that is looked at: the next one, the other side, the next one that holds a text."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from textual.message import Message

from llmtui.tui.screens.data_panes import DataPanes
from llmtui.tui.widgets.bar_lines import Footer
from llmtui.tui.widgets.row_pane import RowPane

if TYPE_CHECKING:
    from textual.widgets import Input

    from llmtui.core.data.preview import Preview, PreviewRow, Side

_NAMES = {"train": "training", "val": "validation"}


class DataRows(DataPanes, inherit_bindings=False):
    """A place in the rows of each side, and a text that is searched."""

    DEFAULT_CSS = """
    DataRows #search { dock: bottom; height: 1; border: none; padding: 0 1; background: $panel; offset-y: -1; }
    """
    _preview: Preview | None = None
    _side: Side = "train"
    _wanted = ""
    _searching: threading.Event | None = None

    class Found(Message):
        """A search has ended: on a row, or in vain (None). `again`: it began beside the row that is shown."""

        def __init__(self, search: threading.Event, side: Side, index: int | None, again: bool) -> None:
            super().__init__()
            self.search = search
            self.side = side
            self.index = index
            self.again = again

    def take_rows(self, preview: Preview) -> None:
        """Show the first row."""
        self._preview = preview
        self._at: dict[Side, int] = {"train": 0, "val": 0}
        self.show_row()
        self.show_keys()

    def row(self) -> PreviewRow | None:
        """The row that is looked at."""
        return self._preview.row(self._side, self._at[self._side]) if self._preview is not None else None

    def show_row(self) -> None:
        """Bring the pane up to date."""
        pane, preview = self.query_one(RowPane), self._preview
        if preview is None:
            return
        pane.note = ()
        if self._searching is not None:
            pane.note = ((f"searching {self._wanted} …", "busy"),)
        elif self._wanted:
            pane.note = ((f"/{self._wanted}", "key"),)
        pane.show_row(self.row(), preview.rows(self._side), self._wanted)

    def useless_actions(self) -> frozenset[str]:
        if self._preview is None:
            return frozenset({"row", "next", "search", "side"})
        return frozenset() if self._preview.rows("val") else frozenset({"side"})

    # --- keys

    def action_row(self, by: int) -> None:
        preview = self._preview
        if preview is None:
            return
        self.row_forward()
        at, last = self._at[self._side], preview.rows(self._side) - 1
        if not 0 <= at + by <= last:
            self.say(f"this is the {'last' if by > 0 else 'first'} {_NAMES[self._side]} row", "faint", 2.0)
            return
        self._at[self._side] = at + by
        self.show_row()

    def action_next(self, by: int) -> None:
        if self._wanted:
            self._search(self._at[self._side] + by, backwards=by < 0, again=True)
        else:
            self.action_row(by)

    def action_side(self) -> None:
        if self._preview is None:
            return
        other: Side = "val" if self._side == "train" else "train"
        if not self._preview.rows(other):
            self.say(f"there are no {_NAMES[other]} rows", "warn", 3.0)
            return
        self.stop_search()
        self.row_forward()
        self._side = other
        self.show_row()

    def action_copy(self) -> None:
        row = self.row()
        if row is not None:
            self.llmtui.copy(row.text)

    # --- searching

    def action_search(self) -> None:
        """Open the field (Textual's `Input` is imported here, not before the first paint)."""
        from textual.widgets import Input

        if self._preview is None:
            return
        for field in self.query(Input):
            field.focus()
            return
        hint = "a text, or the place of a row as :LINE"
        field = Input(value=self._wanted, placeholder=hint, id="search", compact=True)
        self.mount(field, before=self.query_one(Footer))
        field.focus()
        self.say("enter goes to the next row that holds it, esc leaves the field", "faint", 60.0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id != "search":
            return
        wanted = event.value
        self.leave_field()
        self.stop_search()
        self._wanted = wanted
        if wanted:
            self._search(self._at[self._side])
        else:
            self.show_row()

    def _search(self, start: int, *, backwards: bool = False, again: bool = False) -> None:
        """Look for the text in a thread: this side from `start` on and round, then the other."""
        preview, side, wanted = self._preview, self._side, self._wanted
        if preview is None:
            return
        self.stop_search()
        search = self._searching = threading.Event()
        other: Side = "val" if side == "train" else "train"

        def work() -> None:
            index = preview.find(side, wanted, start, backwards=backwards, stop=search.is_set)
            if index is None and not search.is_set():
                found = preview.find(other, wanted, 0, stop=search.is_set)
                self.post_message(self.Found(search, side if found is None else other, found, again))
            else:
                self.post_message(self.Found(search, side, index, again))

        self.show_row()
        self.run_worker(work, thread=True, group="search", exit_on_error=False)

    def on_data_rows_found(self, message: Found) -> None:
        """Go there, unless something newer is looked for."""
        if message.search is not self._searching:
            return
        self._searching = None
        if message.index is None:
            self.say(f"no row holds {self._wanted}", "warn")
        elif message.side != self._side:
            self.say(f"no {_NAMES[self._side]} row holds it; this is a {_NAMES[message.side]} row", "warn")
        elif message.index == self._at[message.side]:
            self.say("no other row holds it" if message.again else "this row holds it", "faint", 2.0)
        if message.index is not None:
            self._side = message.side
            self._at[message.side] = message.index
        self.show_row()

    def stop_search(self) -> None:
        """End the thread that looks, if there is one."""
        if self._searching is not None:
            self._searching.set()
            self._searching = None

    def leave_field(self) -> bool:
        """Close the field; whether it was open."""
        from textual.widgets import Input

        fields = self.query(Input)
        if not fields:
            return False
        fields.remove()
        self.say("", "text", 0.01)
        self.set_focus(None)
        self.bring_forward(self.query_one(RowPane))
        self.show_keys()
        return True

    def leave_search(self) -> bool:
        """Forget the searched text; whether there was one."""
        had = bool(self._wanted)
        self.stop_search()
        self._wanted = ""
        if had:
            self.show_row()
        return had
