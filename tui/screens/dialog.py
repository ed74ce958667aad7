"""A box over the place: a text that scrolls, and keys below it. All dialogs are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, strip_of
from llmtui.tui.widgets.text_pane import TextPane

Answer = TypeVar("Answer")


class KeyLine(Pane, can_focus=False):
    """The keys of a dialog."""

    titled = False
    DEFAULT_CSS = "KeyLine { height: 1; width: 1fr; dock: bottom; }"

    def __init__(self, hints: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._hints = hints

    def content(self, width: int, height: int) -> list[Strip]:
        pieces: list[Piece] = [(" ", "text")]
        for key, label in self._hints:
            pieces += [(key, "key"), (f" {label}   ", "faint")]
        return [strip_of(pieces, width)]


class DialogText(TextPane):
    """The text of a dialog, as high as it needs to be."""

    DEFAULT_CSS = "DialogText { height: auto; max-height: 1fr; }"

    def __init__(self, heading: Line, lines: Sequence[Piece]) -> None:
        super().__init__()
        self.heading = heading
        self.lines = tuple(lines)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Textual asks how high the text is at this width."""
        self._wrap(max(1, width - 2))
        return len(self._wrapped) + 1


class Dialog(ModalScreen[Answer], inherit_bindings=False):
    """`esc` closes it without an answer."""

    BINDINGS = [
        Binding("escape,q", "close", "close", show=False),
        Binding("ctrl+c", "close", "close", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Dialog { align: center middle; background: transparent; }
    Dialog > #box {
        width: 72; max-width: 100%; height: auto; max-height: 100%;
        padding: 0 1; background: $background; border: round $primary;
    }
    Dialog.-ascii > #box { border: ascii $primary; }
    Dialog > #box.-wide { width: 100; }
    Dialog Input { background: $panel; padding: 0 1; }
    """
    HINTS: Sequence[tuple[str, str]] = (("esc", "close"),)
    WIDE = False

    def heading(self) -> Line:
        """The title of the box."""
        return ()

    def text(self) -> Sequence[Piece]:
        """Lines of the box."""
        return ()

    def fields(self) -> Iterable[Widget]:
        """Widgets between text and keys."""
        return ()

    def mark_ascii(self) -> None:
        """Borders that this terminal can show."""
        self.set_class(not Drawing.glyphs.braille, "-ascii")

    def compose(self) -> ComposeResult:
        self.mark_ascii()
        with Vertical(id="box", classes="-wide" if self.WIDE else ""):
            yield DialogText(self.heading(), self.text())
            yield from self.fields()
            yield KeyLine(self.HINTS)

    def action_close(self) -> None:
        self.dismiss(None)
