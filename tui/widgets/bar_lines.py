"""The first and the last line of every place: where one is, and which keys work here."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from llmtui.tui.keys import Key
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, cut, strip_of, width_of

_OF_PRESETS = ("editor", "data")  # opened from there
PLACES = (("presets", "1 Presets"), ("runs", "2 Runs"), ("run", "3 Run"))


class Header(Pane, can_focus=False):
    """The places with the present one brought out, and the home folder."""

    titled = False
    DEFAULT_CSS = "Header { dock: top; height: 1; width: 1fr; }"

    def __init__(self, place: str, home: str) -> None:
        super().__init__()
        self._place = place
        self._home = home

    def content(self, width: int, height: int) -> list[Strip]:
        left: list[Piece] = [(" llmtui ", "strong")]
        for name, label in PLACES:
            here = name == ("presets" if self._place in _OF_PRESETS else self._place)
            shown = f"[{label}]" if here and not Drawing.palette.colour else f" {label} "
            left.append((shown, "place" if here else "faint"))
        room = width - width_of(left) - 2
        if room > 10:
            home = cut(self._home, room)
            left += [(" " * (width - width_of(left) - width_of(((home, ""),)) - 1), "text"), (home, "faint")]
        return [strip_of(left, width)]


class Footer(Pane, can_focus=False):
    """Keys with their labels, as many as fit; or for a moment something that is to be said."""

    titled = False
    DEFAULT_CSS = "Footer { dock: bottom; height: 1; width: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[Key, ...] = ()
        self._said: Line = ()

    def show_keys(self, hints: Sequence[Key]) -> None:
        """The keys that work now, most useful first."""
        if self.is_news(*hints):
            self._keys = tuple(hints)
            self.repaint()

    def say(self, text: str, style: str, seconds: float) -> None:
        """Say something in place of the keys."""
        said: Line = ((" " + text, style),)
        self._said = said
        self.repaint()

        def be_quiet() -> None:
            if self._said is said:
                self._said = ()
                self.repaint()

        self.set_timer(seconds, be_quiet)

    def content(self, width: int, height: int) -> list[Strip]:
        if self._said:
            return [strip_of(((cut(self._said[0][0], width), self._said[0][1]),), width)]
        always = [key for key in self._keys if key.footer >= 90]
        chosen: list[Key] = []
        used = sum(_width(key) for key in always)
        for key in (key for key in self._keys if key.footer < 90):
            if used + _width(key) > width - 1:
                break
            used += _width(key)
            chosen.append(key)
        pieces: list[Piece] = [(" ", "text")]
        for key in [*chosen, *always]:
            pieces += [(key.shown, "key"), (f" {key.label}  ", "faint")]
        return [strip_of(pieces, width)]


def _width(key: Key) -> int:
    return width_of(((f"{key.shown} {key.label}  ", ""),))
