"""What all places share: header, footer, panes to step through, and a word with the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from llmtui.tui import keys
from llmtui.tui.keys import Key
from llmtui.tui.widgets.bar_lines import Footer, Header
from llmtui.tui.widgets.pane import Pane

if TYPE_CHECKING:
    from llmtui.tui.app import LlmtuiApp


class Place(Screen[None], inherit_bindings=False):
    """One of the numbered places. Subclasses give `body` and their actions."""

    PLACE: ClassVar[str] = ""
    AUTO_FOCUS = ""

    @property
    def llmtui(self) -> LlmtuiApp:
        """The app, with its type."""
        return cast("LlmtuiApp", self.app)

    def compose(self) -> ComposeResult:
        yield Header(self.PLACE, self.llmtui.home_shown)
        yield from self.body()
        yield Footer()

    def body(self) -> Iterable[Widget]:
        """The widgets between header and footer."""
        return ()

    def on_mount(self) -> None:
        panes = self.panes()
        if panes:
            self.set_focus(panes[0])
        self.show_keys()

    # --- keys

    def scopes(self) -> tuple[str, ...]:
        """The scopes of the key table that work now, innermost first."""
        focused = self.focused
        inner = focused.SCOPES if isinstance(focused, Pane) else ()
        return (*inner, self.PLACE, "app")

    def useless_actions(self) -> frozenset[str]:
        """Actions that can do nothing now: left out of the footer."""
        return frozenset()

    def show_keys(self) -> None:
        """Bring the footer up to date."""
        useless = self.useless_actions()
        hints = [k for k in keys.keys_of(*self.scopes()) if k.footer and k.action.partition("(")[0] not in useless]
        hints.sort(key=lambda key: key.footer)
        for footer in self.query(Footer):
            footer.show_keys(hints)

    def palette_keys(self) -> list[Key]:
        """Every action that can be done here."""
        return keys.keys_of(*self.scopes())

    def say(self, text: str, style: str = "text", seconds: float = 6.0) -> None:
        """One line at the foot of the screen, for a moment."""
        for footer in self.query(Footer):
            footer.say(text, style, seconds)

    def on_descendant_focus(self) -> None:
        self.show_keys()

    # --- panes

    def panes(self) -> list[Pane]:
        """The panes that tab goes through, in order."""
        return [pane for pane in self.query(Pane) if pane.can_focus and pane.display]

    def action_next_pane(self) -> None:
        self._step(1)

    def action_previous_pane(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        panes = self.panes()
        if not panes:
            return
        at = next((i for i, pane in enumerate(panes) if pane is self.focused), -1 if by > 0 else 0)
        self.set_focus(panes[(at + by) % len(panes)])

    def action_full_pane(self) -> None:
        """Places with more than one pane answer to this."""

    def action_step_back(self) -> None:
        """Places with something to leave answer to this."""
