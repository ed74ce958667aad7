"""The characters the screens are drawn with: one set for UTF-8 terminals, one for all others."""

from __future__ import annotations

import locale
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set. `braille` says whether the chart may use eight dots to a cell."""

    braille: bool
    rule: str
    rule_focused: str
    full: str
    others: str
    free: str
    cursor: str
    dot: str
    dash: str
    ellipsis: str
    eval_point: str
    bad_point: str
    axis_left: str
    axis_bottom: str
    axis_corner: str
    axis_tick: str
    crosshair: str
    arrow: str
    about: str
    times: str
    up: str
    down: str
    newline: str
    states: dict[str, str]


UNICODE = Glyphs(
    braille=True,
    rule="─", rule_focused="━", full="█", others="▒", free="·", cursor="❯", dot="·", dash="–", ellipsis="…",
    eval_point="◆", bad_point="✖", axis_left="│", axis_bottom="─", axis_corner="└", axis_tick="┤", crosshair="┊",
    arrow="→", about="≈", times="×", up="▲", down="▼",
    newline="⏎",
    states={
        "queued": "◌", "starting": "◔", "running": "●", "stopping": "◑", "finished": "✔", "stopped": "■",
        "failed": "✖", "interrupted": "‖", "damaged": "?",
    },
)  # fmt: skip

ASCII = Glyphs(
    braille=False,
    rule="-", rule_focused="=", full="#", others="%", free=".", cursor=">", dot="-", dash="-", ellipsis="~",
    eval_point="E", bad_point="X", axis_left="|", axis_bottom="-", axis_corner="+", axis_tick="+", crosshair=":",
    arrow="->", about="~", times="x", up="^", down="v",
    newline="\\n",
    states={
        "queued": "o", "starting": "o", "running": "*", "stopping": "*", "finished": "+", "stopped": "#",
        "failed": "X", "interrupted": "!", "damaged": "?",
    },
)  # fmt: skip


def terminal_glyphs() -> Glyphs:
    """The set this terminal can show: UTF-8 by locale and stream; the Linux console's font has no braille."""
    encoding = (getattr(sys.__stderr__, "encoding", None) or "ascii").lower().replace("-", "")
    by_locale = locale.nl_langinfo(locale.CODESET).lower().replace("-", "")
    utf8_mode = sys.flags.utf8_mode == 1
    if encoding != "utf8" or (by_locale != "utf8" and not utf8_mode) or os.environ.get("TERM") == "linux":
        return ASCII
    return UNICODE


def to_ascii(text: str) -> str:
    """The same text for a terminal without UTF-8: our own signs translated, all else outside ASCII as `?`."""
    return text if text.isascii() else text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


_PLAIN = str.maketrans(
    {
        "–": "-", "—": "-", "−": "-", "…": "~", "·": "-", "×": "x", "≈": "~", "→": "->", "←": "<-", "≤": "<=",
        "≥": ">=", "✔": "+", "✖": "X", "●": "*", "’": "'", "“": '"', "”": '"', "°": " ", "±": "+-", "α": "alpha",
        "↑": "^", "↓": "v", "█": "#", "▒": "%",
    }
)  # fmt: skip
