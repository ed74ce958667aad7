"""The Editor place: every key of a preset in a form, with its help, its effect and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from llmtui.core.errors import LlmtuiError
from llmtui.tui import keys
from llmtui.tui.screens.place import Place
from llmtui.tui.widgets.editor_document import Document
from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.editor_find import FindLine
from llmtui.tui.widgets.editor_form import EditorForm
from llmtui.tui.widgets.editor_help import NotePane, help_lines, title_of
from llmtui.tui.widgets.editor_rows import FieldRow, SectionRow
from llmtui.tui.widgets.editor_summary import Summary

WIDE_COLUMNS: Final = 120
_TYPING_PAUSE: Final = 0.04
_FORECAST_PAUSE: Final = 0.25


class EditorScreen(Place, inherit_bindings=False):
    """Pushed with a document; says `Saved`, `RunRequested` and `Closed` to the app."""

    PLACE = "editor"
    BINDINGS = keys.bindings("editor")
    DEFAULT_CSS = """
    EditorScreen #editor-body { layout: grid; grid-size: 2 2; grid-columns: 3fr 2fr; grid-rows: 1fr 8; height: 1fr; }
    EditorScreen #form { column-span: 2; }
    EditorScreen.-wide #editor-body { grid-size: 2 2; grid-columns: 3fr 2fr; grid-rows: 1fr 2fr; }
    EditorScreen.-wide #form { column-span: 1; row-span: 2; }
    EditorScreen.-low #editor-body { grid-rows: 1fr 4; }
    EditorScreen.-tiny #editor-body { grid-size: 1 1; grid-rows: 1fr; grid-columns: 1fr; }
    EditorScreen.-tiny NotePane { display: none; }
    """

    class Saved(Message):
        """The preset stands in this file."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class RunRequested(Message):
        """The preset in this file is to be run."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Closed(Message):
        """The editor was left."""
