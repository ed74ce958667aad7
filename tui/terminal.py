"""The terminal that the screens are drawn on: what it can do, when it goes away, its clipboard."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from textual.app import App

_LOOK_SECONDS: Final = 1.0


def prepare_textual() -> None:
    """What Textual reads at import: no animations, no smooth scrolling, few frames a second."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    os.environ.setdefault("TEXTUAL_FPS", "15")


def cannot_draw() -> str:
    """Why no screen can be drawn here; empty when one can."""
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return f"this terminal cannot draw screens (TERM={term or 'is not set'})"
    if not (sys.__stdin__ and sys.__stdin__.isatty() and sys.__stdout__ and sys.__stdout__.isatty()):
        return "this is not a terminal"
    return ""


def end_with_terminal(app: App[None]) -> None:
    """When the terminal is closed, end at once: nothing of a run depends on a screen.

    Textual's input thread would spin on the hung-up terminal, and without SIGHUP (nohup, a shell that
    disowned us) nothing else would end it. Everything here is read-only, so the end needs no farewell.
    """
    if app.is_headless:
        return

    def end(*_: object) -> None:
        os._exit(128 + signal.SIGHUP)

    signal.signal(signal.SIGHUP, end)
    signal.signal(signal.SIGTERM, lambda *_: app.call_later(app.exit))
    descriptor = sys.__stdin__.fileno() if sys.__stdin__ else -1
    poll = select.poll()
    poll.register(descriptor, 0)  # POLLHUP and POLLERR are always told

    def look() -> None:
        if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0)):
            end()

    app.set_interval(_LOOK_SECONDS, look)


def copy_to_tmux(text: str) -> None:
    """Into tmux's buffer, where there is one; `-w` hands it on to the outer terminal too."""
    if not os.environ.get("TMUX"):
        return
    try:
        subprocess.run(
            ["tmux", "load-buffer", "-w", "-"], input=text.encode(), check=False, timeout=2,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return


def short_path(path: Path) -> str:
    """With `~` for the user's own folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def what_goes_on(runs: Path) -> str:
    """A sentence about the runs that live on after the screen is left; empty when none does."""
    from llmtui.core.runs.reader import liveness, run_directories
    from llmtui.core.text import safe_text

    try:
        alive = [d.id for d in run_directories(runs) if liveness(d).any]
    except OSError:
        return ""
    if not alive:
        return ""
    if len(alive) == 1:
        name = safe_text(alive[0])
        return f"the run {name} goes on; come back with: llmtui attach {name}"
    return f"{len(alive)} runs go on; come back with: llmtui"
