"""Colours and styles by meaning. Safe for colour-blind eyes (blue, orange, teal, yellow after Okabe and Ito),
exact entries of the xterm-256 cube (so that a terminal without true colour shows the same), and never the only
sign: every style that means something also differs by glyph, word or weight.
"""

from __future__ import annotations

from typing import Final

from rich.style import Style
from textual.theme import Theme

BACKGROUND: Final = "#121212"
RAISED: Final = "#262626"
TEXT: Final = "#d0d0d0"
FAINT: Final = "#8a8a8a"
LINE: Final = "#4e4e4e"
BLUE: Final = "#5fafff"
ORANGE: Final = "#ffaf00"
TEAL: Final = "#00d7af"
YELLOW: Final = "#ffd75f"
VERMILION: Final = "#ff5f00"
STEEL: Final = "#5f87af"

THEME: Final = Theme(
    name="llmtui",
    primary=BLUE,
    secondary=TEAL,
    accent=ORANGE,
    warning=YELLOW,
    error=VERMILION,
    success=TEAL,
    foreground=TEXT,
    background=BACKGROUND,
    surface=BACKGROUND,
    panel=RAISED,
    boost=RAISED,
    dark=True,
    luminosity_spread=0.0,
    text_alpha=1.0,
)

_COLOURED: Final = {
    "text": Style(color=TEXT),
    "strong": Style(color="#ffffff", bold=True),
    "faint": Style(color=FAINT),
    "rule": Style(color=LINE),
    "rule_focused": Style(color=BLUE),
    "title": Style(color=TEXT),
    "title_focused": Style(color=BLUE, bold=True),
    "key": Style(color=BLUE, bold=True),
    "place": Style(color="#121212", bgcolor=BLUE, bold=True),
    "cursor": Style(bgcolor="#303030"),
    "cursor_focused": Style(color="#ffffff", bgcolor="#005f87", bold=True),
    "good": Style(color=TEAL),
    "busy": Style(color=BLUE),
    "warn": Style(color=YELLOW),
    "bad": Style(color=VERMILION, bold=True),
    "raw": Style(color=STEEL),
    "smooth": Style(color=ORANGE, bold=True),
    "eval": Style(color=TEAL, bold=True),
    "crosshair": Style(color=YELLOW),
    "trained": Style(color=TEAL, underline=True),
    "masked": Style(color=FAINT),
    "special": Style(color=BACKGROUND, bgcolor=FAINT),
    "special_trained": Style(color=BACKGROUND, bgcolor=TEAL, underline=True),
    "hit_trained": Style(color=BACKGROUND, bgcolor=YELLOW, underline=True),
    "hit_masked": Style(color=BACKGROUND, bgcolor=YELLOW),
    "bar_run": Style(color=BLUE),
    "bar_others": Style(color=ORANGE),
    "bar_free": Style(color=LINE),
    "bar_host": Style(color=TEAL),
}

_PLAIN: Final = {
    "text": Style(),
    "strong": Style(bold=True),
    "faint": Style(dim=True),
    "rule": Style(dim=True),
    "rule_focused": Style(bold=True),
    "title": Style(),
    "title_focused": Style(bold=True),
    "key": Style(bold=True),
    "place": Style(reverse=True, bold=True),
    "cursor": Style(underline=True),
    "cursor_focused": Style(reverse=True),
    "good": Style(),
    "busy": Style(),
    "warn": Style(bold=True),
    "bad": Style(bold=True, reverse=True),
    "raw": Style(dim=True),
    "smooth": Style(bold=True),
    "eval": Style(bold=True),
    "crosshair": Style(),
    "trained": Style(bold=True, underline=True),
    "masked": Style(),
    "special": Style(reverse=True),
    "special_trained": Style(reverse=True, bold=True, underline=True),
    "hit_trained": Style(reverse=True, bold=True, underline=True),
    "hit_masked": Style(reverse=True),
    "bar_run": Style(bold=True),
    "bar_others": Style(),
    "bar_free": Style(dim=True),
    "bar_host": Style(),
}

STATE_STYLES: Final = {
    "queued": "faint",
    "starting": "busy",
    "running": "busy",
    "stopping": "warn",
    "finished": "good",
    "stopped": "warn",
    "failed": "bad",
    "interrupted": "warn",
    "damaged": "bad",
}


class Palette:
    """Styles by name, with colour or without."""

    def __init__(self, colour: bool = True) -> None:
        self.colour = colour
        styles = _COLOURED if colour else _PLAIN
        self._styles = styles | {f"state_{state}": styles[name] for state, name in STATE_STYLES.items()}
        self.ground = Style(color=TEXT, bgcolor=BACKGROUND) if colour else Style()

    def __getitem__(self, name: str) -> Style:
        return self._styles[name]
