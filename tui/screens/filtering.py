"""`/`: a field at the foot of a place that filters its list as one types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmtui.tui.screens.place import Place
from llmtui.tui.widgets.bar_lines import Footer

if TYPE_CHECKING:
    from textual.widgets import Input


class FilteredPlace(Place, inherit_bindings=False):
    """A place with a list that can be filtered."""

    filter_text = ""

    def filter_changed(self) -> None:
        """`filter_text` is another one: show the rows that contain it."""

    def action_filter(self) -> None:
        """Open the field (Textual's `Input` is imported here, not before the first paint)."""
        from textual.widgets import Input

        for field in self.query(Input):
            field.focus()
            return
        field = Input(
            value=self.filter_text, placeholder="filter: every word must be in the row", id="filter", compact=True
        )
        self.mount(field, before=self.query_one(Footer))
        field.focus()
        self.say("enter keeps the filter, esc clears it", "faint", 60.0)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.filter_text = event.value
            self.filter_changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._close_filter()

    def action_step_back(self) -> None:
        self.clear_filter()

    def clear_filter(self) -> bool:
        """Take the filter away; whether there was one or its field was open."""
        from textual.widgets import Input

        had = bool(self.filter_text) or bool(self.query(Input))
        self.filter_text = ""
        self._close_filter()
        if had:
            self.filter_changed()
        return had

    def _close_filter(self) -> None:
        self.query("#filter").remove()
        panes = self.panes()
        if panes:
            self.set_focus(panes[0])
        self.say("", "text", 0.01)
        self.show_keys()


def contains(text: str, wanted: str) -> bool:
    """Whether every word of `wanted` is in the text, small or capital."""
    low = text.casefold()
    return all(word in low for word in wanted.casefold().split())
