"""Where the panes of the Data screen stand: all of them, or one alone where there is little room or `+` says so."""

from __future__ import annotations

from typing import Final

from llmtui.tui.screens.place import Place
from llmtui.tui.widgets.pane import Pane

_WIDE: Final = (140, 30)
_TINY: Final = (64, 16)


class DataPanes(Place, inherit_bindings=False):
    """Numbers above (or left of) a row."""

    DEFAULT_CSS = """
    DataPanes #data-body { layout: vertical; height: 1fr; }
    DataPanes #numbers { layout: horizontal; height: 12; }
    DataPanes #lengths { margin-left: 1; }
    DataPanes.-high #numbers { height: 16; }
    DataPanes.-beside #data-body { layout: horizontal; }
    DataPanes.-beside #numbers { layout: vertical; width: 2fr; height: 1fr; }
    DataPanes.-beside #row { width: 3fr; margin-left: 1; }
    DataPanes.-beside #lengths { margin-left: 0; }
    DataPanes.-single #numbers { width: 1fr; height: 1fr; }
    DataPanes.-single #row, DataPanes.-single #lengths { margin-left: 0; }
    """
    _full = False
    _tiny = False
    _front: Pane | None = None

    def panes(self) -> list[Pane]:
        return [self.query_one(f"#{name}", Pane) for name in ("row", "counts", "lengths")]

    def fit(self, width: int, height: int) -> None:
        """Take the size of the terminal into account."""
        self.set_class(width >= _WIDE[0] and height >= _WIDE[1], "-beside")
        self.set_class(height >= 32, "-high")
        self._tiny = width < _TINY[0] or height < _TINY[1]
        self._show_panes()

    def bring_forward(self, pane: Pane) -> None:
        """Focus a pane; where one is shown alone it is this one."""
        self._front = pane
        self._show_panes()

    def _show_panes(self) -> None:
        panes = self.panes()
        front = self._front or panes[0]
        alone = self._full or self._tiny
        self.set_class(alone, "-single")
        front.display = True
        self.query_one("#numbers").display = not alone or front is not panes[0]
        if self.focused is None or isinstance(self.focused, Pane):  # else a field is being typed into
            self.set_focus(front)
        for pane in panes:
            pane.display = not alone or pane is front

    def _step(self, by: int) -> None:
        panes = self.panes()
        at = panes.index(self._front) if self._front in panes else 0
        self.bring_forward(panes[(at + by) % len(panes)])

    def action_full_pane(self) -> None:
        self._full = not self._full
        self._show_panes()

    def row_forward(self) -> None:
        """Show the row where another pane stands alone."""
        if (self._full or self._tiny) and self._front is not None:
            self.bring_forward(self.panes()[0])

    def leave_full(self) -> bool:
        """All panes again; whether one was alone by wish."""
        was, self._full = self._full, False
        if was:
            self._show_panes()
        return was
