"""What the editor asks: the name of a copy, what becomes of unsaved changes, a look at the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.binding import Binding
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.pane import Line, Pane, Piece, strip_of


class SaveAs(Dialog[str]):
    """Answers with a name that `problem_of` has nothing against."""

    BINDINGS = [Binding("escape", "close", "close", show=False)]
    HINTS = (("enter", "save"), ("esc", "do not save"))
    DEFAULT_CSS = "SaveAs TypingField { padding: 0 1; }"

    def __init__(self, lines: Sequence[Piece], name: str, problem_of: Callable[[str], str]) -> None:
        super().__init__()
        self._lines = lines
        self._preset = name
        self._problem_of = problem_of

    def heading(self) -> Line:
        return (("Save as", "title"),)

    def text(self) -> Sequence[Piece]:
        return (("", "text"), *self._lines, ("", "text"))

    def fields(self) -> Iterable[Widget]:
        yield TypingField(self._ended, id="name")
        yield _ProblemLine()

    def on_mount(self) -> None:
        self.query_one(TypingField).begin(self._preset)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one(_ProblemLine).show(self._problem_of(event.value.strip()))

    def _ended(self, how: str) -> None:
        name = self.query_one(TypingField).value.strip()
        if how == "cancel":
            self.dismiss(None)
        elif how == "keep" and not self._problem_of(name):
            self.dismiss(name)
        else:
            self.app.bell()


class _ProblemLine(Pane, can_focus=False):
    titled = False
    DEFAULT_CSS = "_ProblemLine { height: 1; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def show(self, text: str) -> None:
        self._text = text
        self.repaint()

    def content(self, width: int, height: int) -> list[Strip]:
        return [strip_of(((" " + self._text, "bad"),), width)] if self._text else []


class Unsaved(Dialog[str]):
    """Answers `save`, `drop`, or nothing (stay)."""

    BINDINGS = [
        Binding("w", "answer('save')", "save", show=False),
        Binding("X", "answer('drop')", "drop", show=False),
    ]
    HINTS = (("w", "save them"), ("X", "drop them"), ("esc", "stay"))

    def __init__(self, name: str, lines: int) -> None:
        super().__init__()
        self._preset = name
        self._count = lines

    def heading(self) -> Line:
        return (("Unsaved changes in ", "title"), (self._preset, "strong"))

    def text(self) -> Sequence[Piece]:
        lines = "1 line differs" if self._count == 1 else f"{self._count} lines differ"
        return (("", "text"), (f"{lines} from the file.", "text"), ("", "text"))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer)


class Overwrite(Dialog[str]):
    """The file became another one meanwhile. Answers `save` or nothing."""

    BINDINGS = [Binding("w", "answer", "overwrite", show=False)]
    HINTS = (("w", "write over it"), ("esc", "do not save"))

    def __init__(self, name: str) -> None:
        super().__init__()
        self._preset = name

    def heading(self) -> Line:
        return ((self._preset, "strong"), (" was changed by someone else", "title"))

    def text(self) -> Sequence[Piece]:
        return (
            ("", "text"),
            ("The file is no longer what was opened here.", "text"),
            ("Saving loses what was written there.", "text"),
            ("", "text"),
        )

    def action_answer(self) -> None:
        self.dismiss("save")


class Unreadable(Dialog[str]):
    """What came back from `$EDITOR` is no preset at all. Answers `again` or nothing."""

    BINDINGS = [Binding("E,enter", "answer", "again", show=False)]
    HINTS = (("E", "edit it again"), ("esc", "back to the text before"))

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__()
        self._problems = problems

    def heading(self) -> Line:
        return (("The text cannot be read", "bad"),)

    def text(self) -> Sequence[Piece]:
        return (("", "text"), *((problem, "text") for problem in self._problems), ("", "text"))

    def action_answer(self) -> None:
        self.dismiss("again")


class Difference(Dialog[None]):
    """The lines that differ, with a sign before each."""

    BINDINGS = [Binding("d,enter", "close", "close", show=False)]
    HINTS = (("j k", "scroll"), ("esc", "close"))
    WIDE = True

    def __init__(self, name: str, lines: Sequence[Piece]) -> None:
        super().__init__()
        self._preset = name
        self._lines = lines

    def heading(self) -> Line:
        return (("Changes in ", "title"), (self._preset, "strong"))

    def text(self) -> Sequence[Piece]:
        return self._lines or (("nothing is changed", "faint"),)
