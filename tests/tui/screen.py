"""The fixed runs by name, and what stands on a screen."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import App
from textual.pilot import Pilot

EVENING = "20260531-190000-evening"
EIGHT_CARDS = "20260531-191500-eight-cards"
DEMO = "20260530-201500-demo"
TOO_BIG = "20260530-221500-too-big"
DIVERGED = "20260530-231500-diverged"
RESUMED = "20260531-020000-resumed"
HOSTILE = "20260531-030000-学習テスト①-👨‍👩‍👧"
DAMAGED = "20260531-040000-damaged"
QUEUED = "20260531-192000-next"


async def until(pilot: Pilot[None], condition: Callable[[], object], what: str, limit: float = 15.0) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"waited {limit} s in vain for: {what}\n{text_of(pilot.app)}"
        await pilot.pause(0.02)


def text_of(app: App[None]) -> str:
    """What stands on the screen, as text."""
    width, _ = app.size
    screen = app.screen
    strips = screen._compositor.render_strips(screen.size)
    return "\n".join(strip.text.ljust(width) for strip in strips)
