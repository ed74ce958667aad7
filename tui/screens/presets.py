"""The Presets place: what can be run, and beside it what the chosen one does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.containers import Horizontal
from textual.widget import Widget

from llmtui.core.errors import LlmtuiError
from llmtui.tui import keys
from llmtui.tui.actions import PresetDetails
from llmtui.tui.screens.filtering import FilteredPlace, contains
from llmtui.tui.widgets.facts_pane import Fact, FactsPane
from llmtui.tui.widgets.list_pane import Column, ListPane, Row
from llmtui.tui.widgets.pane import Drawing, Piece

if TYPE_CHECKING:
    from llmtui.core.preset import PresetEntry

_SORTS: Final = ("yours first", "by name")
_ORIGINS: Final = {"user": "yours", "project": "here", "bundled": "bundled"}


class PresetsPlace(FilteredPlace, inherit_bindings=False):
    """A list and the details of the row under the cursor."""

    PLACE = "presets"
    BINDINGS = keys.bindings("presets")
    DEFAULT_CSS = """
    PresetsPlace #presets { width: 34; }
    PresetsPlace.-wide #presets { width: 50; }
    PresetsPlace #details { width: 3fr; margin-left: 1; }
    PresetsPlace.-tiny #details { display: none; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-usual"), (120, "-wide")]

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[PresetEntry, ...] = ()
        self._details: dict[Path, PresetDetails] = {}
        self._sort = 0
        self._loaded = False

    def body(self) -> Iterable[Widget]:
        presets = ListPane((Column("preset", 16, grow=True), Column("from", 7, drop=1)), id="presets")
        presets.heading = [("Presets", "title")]
        presets.empty = ("", "reading the presets …")
        with Horizontal():
            yield presets
            details = FactsPane(id="details")
            details.heading = [("What it does", "title")]
            yield details

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.load)

    def load(self) -> None:
        """Read the library again, away from the screen's thread (the first time imports the schema too)."""
        self.run_worker(self._read, thread=True, exclusive=True, group="presets", exit_on_error=False)

    def _read(self) -> None:
        try:
            entries = self.llmtui.actions.presets()
        except Exception as error:
            self.app.call_from_thread(self.llmtui.show_error, error)
            return
        self.app.call_from_thread(self._take, entries)

    def _take(self, entries: tuple[PresetEntry, ...]) -> None:
        self._entries, self._loaded = entries, True
        self._details.clear()
        self._show()
        written, self.llmtui.preset_written = self.llmtui.preset_written, None
        if written is not None:
            self.query_one("#presets", ListPane).put_cursor(str(written))
        self._show_details(from_top=False)

    def filter_changed(self) -> None:
        self._show()

    def _show(self) -> None:
        pane = self.query_one("#presets", ListPane)
        chosen = [
            e for e in self._entries if contains(f"{e.name} {_ORIGINS[e.origin]} {e.description}", self.filter_text)
        ]
        if self._sort == 1:
            chosen.sort(key=lambda entry: entry.name.casefold())
        pane.heading = [("Presets", "title"), (f"  {_SORTS[self._sort]}", "faint")]
        pane.note = [(f"filter: {self.filter_text}", "key")] if self.filter_text else []
        pane.empty = ("", "no preset contains this; esc clears the filter" if self._entries else "there are no presets")
        pane.show([Row(str(entry.path), _cells(entry)) for entry in chosen])
        self.show_keys()

    # --- details

    def chosen(self) -> PresetEntry | None:
        """The preset under the cursor."""
        key = self.query_one("#presets", ListPane).cursor_key
        return next((entry for entry in self._entries if str(entry.path) == key), None)

    def on_list_pane_moved(self, message: ListPane.Moved) -> None:
        self._show_details(from_top=True)

    def _show_details(self, *, from_top: bool) -> None:
        entry, pane = self.chosen(), self.query_one("#details", FactsPane)
        if entry is None:
            pane.heading = [("What it does", "title")]
            pane.show_facts((), from_top=True)
            return
        pane.heading = [(entry.name, "title")]
        details = self._details.get(entry.path)
        if details is None:
            pane.show_facts([Fact("", entry.description), Fact("", "reading …", "faint")], from_top=from_top)
            self.run_worker(
                lambda: self._read_details(entry), thread=True, exclusive=True, group="details", exit_on_error=False
            )
            return
        pane.show_facts(details.facts, from_top=from_top)

    def _read_details(self, entry: PresetEntry) -> None:
        try:
            details = self.llmtui.actions.preset_details(entry.path)
        except Exception as error:  # shown where it belongs; the list goes on
            text = f"this preset could not be read: {type(error).__name__}: {error}"
            details = PresetDetails(entry.name, entry.path, (Fact("", text, "bad"),))
        self.app.call_from_thread(self._take_details, entry.path, details)

    def _take_details(self, path: Path, details: PresetDetails) -> None:
        self._details[path] = details
        entry = self.chosen()
        if entry is not None and entry.path == path:
            self._show_details(from_top=False)

    # --- keys

    def useless_actions(self) -> frozenset[str]:
        entry = self.chosen() if self._loaded else None
        return frozenset() if entry is not None and entry.origin == "user" else frozenset({"delete"})

    def action_run_preset(self) -> None:
        entry = self.chosen()
        if entry is not None:
            self.llmtui.run_preset(entry.path, self._details.get(entry.path))

    def action_data(self) -> None:
        entry = self.chosen()
        if entry is not None:
            self.llmtui.look_at_data(entry.path, self._details.get(entry.path))

    def action_edit(self) -> None:
        entry = self.chosen()
        if entry is not None:
            self.llmtui.edit_preset(entry.path)

    def action_external_edit(self) -> None:
        entry = self.chosen()
        if entry is None:
            return
        try:
            path = self.llmtui.actions.own_copy(entry)
            with self.app.suspend():
                self.llmtui.actions.edit_outside(path)
        except (LlmtuiError, OSError) as error:
            self.llmtui.show_error(error)
            return
        self.llmtui.preset_written = path
        self.load()
        details = self.llmtui.actions.preset_details(path)
        if details.problems:
            self.llmtui.show_problems(path.stem, details.problems)
        else:
            self.say(f"your copy: {path}", "good")

    def action_sort(self) -> None:
        self._sort = (self._sort + 1) % len(_SORTS)
        self._show()

    def action_delete(self) -> None:
        from llmtui.tui.screens.type_name import TypeName

        entry = self.chosen()
        if entry is None or entry.origin != "user":
            self.say("only your own presets can be deleted", "warn")
            return

        def delete(agreed: bool | None) -> None:
            if agreed:
                try:
                    self.llmtui.actions.delete_preset(entry)
                except OSError as error:
                    self.llmtui.show_error(error)
                self.load()

        self.app.push_screen(TypeName("Delete your preset?", (str(entry.path),), entry.name), delete)

    def action_copy(self) -> None:
        entry = self.chosen()
        if entry is not None:
            self.llmtui.copy(entry.name)


def _cells(entry: PresetEntry) -> tuple[Piece, ...]:
    if entry.problem:
        return ((f"{Drawing.glyphs.bad_point} {entry.name}", "bad"), (_ORIGINS[entry.origin], "faint"))
    return ((entry.name, "text"), (_ORIGINS[entry.origin], "faint"))
