"""The keys that work here, from the key table."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding

from llmtui.tui.keys import SCOPE_NAMES, Key
from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.widgets.pane import Line, Piece

_FIELD_HELP = (
    "every printable key types",
    "enter  done",
    "esc    leave the field",
)


class HelpDialog(Dialog[None]):
    """Made from the entries it is given, section by section."""

    BINDINGS = [Binding("question_mark,enter", "close", "close", show=False)]
    HINTS = (("j k", "scroll"), ("esc", "close"))
    WIDE = True

    def __init__(self, entries: Sequence[Key]) -> None:
        super().__init__()
        self._entries = entries

    def heading(self) -> Line:
        return (("Keys", "title"),)

    def text(self) -> Sequence[Piece]:
        lines: list[Piece] = []
        scope = ""
        for key in self._entries:
            if key.scope != scope:
                scope = key.scope
                lines += [("", "text"), (SCOPE_NAMES.get(scope, scope), "strong")]
            lines.append((f"  {key.shown:<10} {key.help}", "text"))
        lines += [("", "text"), (SCOPE_NAMES["field"], "strong"), *((f"  {line}", "text") for line in _FIELD_HELP)]
        return lines
