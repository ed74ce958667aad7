"""The Editor place: every key of a preset in a form, with its help, its effect and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.containers import Container
from textual.events import Resize
from textual.timer import Timer
from textual.widget import Widget

from llmtui.core.preset import LoadedPreset
from llmtui.tui import keys
from llmtui.tui.screens.editor_forecast import EditorForecast
from llmtui.tui.widgets.editor_document import Checked, Document, ValueTextError
from llmtui.tui.widgets.editor_effects import effect_of
from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.editor_find import FindLine
from llmtui.tui.widgets.editor_form import EditorForm
from llmtui.tui.widgets.editor_help import FieldNotes, NotePane, help_lines, title_of
from llmtui.tui.widgets.editor_rows import FieldRow, SectionRow
from llmtui.tui.widgets.editor_summary import SummaryPane
from llmtui.tui.widgets.pane import Drawing, Pane

WIDE_COLUMNS: Final = 120
_LOW_ROWS: Final = 18
_TYPING_PAUSE: Final = 0.05  # seconds without a key before the reader is asked: keys never wait for it


class EditorScreen(EditorForecast, inherit_bindings=False):
    """Opened on a preset. Says `Saved`, `RunRequested` and `Closed` to the app; is dismissed when it is left."""

    BINDINGS = keys.bindings("editor")
    DEFAULT_CSS = """
    EditorScreen #editor-body { layout: grid; grid-size: 2 2; grid-columns: 3fr 2fr; grid-rows: 1fr 8; height: 1fr; }
    EditorScreen #form { column-span: 2; }
    EditorScreen.-wide #editor-body { grid-rows: 1fr 1fr; }
    EditorScreen.-wide #form { column-span: 1; row-span: 2; }
    EditorScreen.-low #editor-body { grid-rows: 1fr 0; }
    EditorScreen.-low #help, EditorScreen.-low #summary { display: none; }
    EditorScreen.-low #form { row-span: 2; column-span: 2; }
    """

    def __init__(self, loaded: LoadedPreset, *, bundled: bool | None = None) -> None:
        super().__init__(Document(loaded.text, loaded.path), bundled=bundled)
        self._trial: Checked | None = None
        self._trial_problem = ""
        self._typing_timer: Timer | None = None
        self._found = ""
        self._find_from = ""

    def body(self) -> Iterable[Widget]:
        with Container(id="editor-body"):
            yield EditorForm(self._typing_ended, id="form")
            yield NotePane("", id="help")
            yield SummaryPane(id="summary")
        yield FindLine(self._find_changed, self._find_done)

    def on_mount(self) -> None:
        super().on_mount()
        self.take_up_draft()
        self.show_document()

    def on_resize(self, event: Resize) -> None:
        width, height = event.size
        self.set_class(width >= WIDE_COLUMNS and height >= _LOW_ROWS, "-wide")
        self.set_class(height < _LOW_ROWS, "-low")

    @property
    def form(self) -> EditorForm:
        return self.query_one(EditorForm)

    def scopes(self) -> tuple[str, ...]:
        if self.form.open_field is not None:
            return TypingField.SCOPES
        return super().scopes()

    def panes(self) -> list[Pane]:
        return [self.form]

    # --- what is shown

    def show_document(self) -> None:
        """Bring every pane up to date with the document."""
        document, form = self.document, self.form
        form.heading = ((self.shown_name, "title"), (self.origin_note, "faint"))
        changed = sum(1 for row in document.rows() if isinstance(row, FieldRow) and row.changed)
        form.note = ((f"* {changed} changed", "busy"),) if document.changed and changed else ()
        if document.changed and not changed:
            form.note = (("* changed", "busy"),)
        form.show(document.rows())
        self.show_notes()
        self.draft_soon()

    def show_notes(self) -> None:
        """The help of the row under the cursor, and the summary."""
        checked = self._trial or self.document.checked
        row = self.form.row
        self.query_one("#help", NotePane).show(help_lines(row, self._notes(row.key, checked)), title_of(row))
        self.query_one(SummaryPane).show_checked(checked, self.forecast_shown(checked.preset))
        self.forecast_soon(checked.loaded)

    def _notes(self, key: str, checked: Checked) -> FieldNotes:
        if self._trial_problem:
            return FieldNotes(problem=self._trial_problem)
        inside = key + "."
        problem = next((p for p in checked.problems if p.field == key or p.field.startswith(inside)), None)
        later = next((p for p in checked.later if p.field == key), None)
        found = problem or later
        before = self.document.opened_text_of(key) if key in self.document.leaves else ""
        return FieldNotes(
            effect=effect_of(key, checked.preset, self.known(checked.preset)),
            problem=found.problem if found is not None else "",
            cure=found.cure if found is not None else "",
            later=problem is None,
            before=before,
        )

    def on_editor_form_moved(self) -> None:
        self.show_notes()

    # --- typing

    def action_edit(self) -> None:
        row = self.form.row
        if isinstance(row, SectionRow):
            self.action_cycle(1)
            return
        self._trial, self._trial_problem = None, ""
        self.form.begin_typing()
        self.show_keys()

    def on_editor_form_typed(self, event: EditorForm.Typed) -> None:
        if self._typing_timer is not None:
            self._typing_timer.stop()
        self._typing_timer = self.set_timer(_TYPING_PAUSE, lambda: self._try(event.key, event.text))

    def _try(self, key: str, text: str) -> None:
        if self.form.typing != key:
            return
        self._trial_problem = ""
        try:
            self._trial = self.document.trial(key, text)
        except ValueTextError as error:
            self._trial, self._trial_problem = None, str(error)
        self.show_notes()

    def _typing_ended(self, how: str) -> None:
        form = self.form
        key = form.typing
        if key is None:
            return
        if self._typing_timer is not None:
            self._typing_timer.stop()
        if how != "cancel":
            try:
                self.document.set(key, form.field.value)
            except ValueTextError as error:
                self._trial, self._trial_problem = None, str(error)
                self.show_notes()
                self.app.bell()
                return
        self._trial, self._trial_problem = None, ""
        form.end_typing()
        self.show_document()
        step = {"next": 1, "previous": -1}.get(how, 0)
        if step:
            form.action_move(step)
            if isinstance(form.row, FieldRow):
                self.action_edit()
        self.show_keys()

    # --- changes by one key

    def action_cycle(self, by: int) -> None:
        row = self.form.row
        if isinstance(row, SectionRow):
            self.document.switch(row.key)
            self.say(f"{row.key} is {'left out' if row.on else 'in the preset'}; u takes it back", "text")
        elif not row.choices:
            self.say("enter: type a value", "faint")
            return
        else:
            self.document.cycle(row.key, by)
        self.show_document()

    def action_unset(self) -> None:
        row = self.form.row
        if isinstance(row, SectionRow):
            if row.on:
                self.action_cycle(1)
        elif self.document.unset(row.key):
            self.show_document()
            self.say(f"{row.name}: the default holds again; u takes it back", "text")

    def action_undo(self) -> None:
        self._after_swap(self.document.undo(), "nothing to undo")

    def action_redo(self) -> None:
        self._after_swap(self.document.redo(), "nothing to redo")

    def _after_swap(self, key: str | None, nothing: str) -> None:
        if key is None:
            self.say(nothing, "faint")
            return
        self.show_document()
        if key:
            self.form.go_to(key)
        self.show_notes()

    # --- getting about

    def action_section(self, by: int) -> None:
        self.form.go_section(by)

    def action_find(self) -> None:
        self._find_from = self.form.row.key
        self.form.open_field = self.query_one(FindLine).open()
        self.show_keys()

    def _find_changed(self, text: str) -> None:
        self.form.go_to(self._find_from)
        if text and not self.form.search(text):
            self.say(f"no field with {text!r}", "warn", 2.0)

    def _find_done(self, found: str | None) -> None:
        self.form.open_field = None
        if found is None:
            self.form.go_to(self._find_from)
        else:
            self._found = found
        self.show_keys()

    def action_find_next(self, by: int) -> None:
        if not self._found:
            self.action_find()
        elif not self.form.search_on(self._found, by):
            self.say(f"no field with {self._found!r}", "warn", 2.0)

    def action_problem(self) -> None:
        checked = self.document.checked
        problems = (*checked.problems, *checked.later)
        if not problems:
            self.say(f"{Drawing.glyphs.states['finished']} nothing is wrong", "good")
            return
        fields = list(dict.fromkeys(self.form.key_for(problem.field) for problem in problems))
        place = fields.index(self.form.row.key) if self.form.row.key in fields else -1
        target = fields[(place + 1) % len(fields)]
        if not target or not self.form.go_to(target):
            self.say("no field of the form has this problem: E shows the text", "warn")
