"""When a run that crashed is started again: with growing pauses, up to a limit, never for what will only repeat."""

from __future__ import annotations

from typing import Final

from llmtui.core.preset import Preset
from llmtui.core.process.causes import Cause

FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 600.0
_WITHOUT_PROGRESS: Final = 2  # so many crashes in a row without a new step are enough


class Restarts:
    """Counts the restarts of one supervisor's life."""

    def __init__(self, preset: Preset, first_pause: float = FIRST_PAUSE) -> None:
        self._wanted = preset.checkpoints.resume == "auto"
        self.limit = preset.limits.restarts
        self._first_pause = first_pause
        self.count = 0
        self._furthest = 0
        self._without_progress = 0
        self._last_text = ""

    def pause_before_next(self, cause: Cause, furthest: int) -> float | None:
        """Seconds to wait before the next attempt; None when there will be none.

        Args:
            furthest: the highest step that any attempt has made.
        """
        progressed = furthest > self._furthest
        repeated = cause.text == self._last_text and not progressed
        self._without_progress = 0 if progressed else self._without_progress + 1
        self._furthest, self._last_text = max(furthest, self._furthest), cause.text
        if not cause.again or not (self._wanted or cause.kind == "hang") or self.count >= self.limit:
            return None
        if self._without_progress >= _WITHOUT_PROGRESS or (repeated and cause.kind != "signal"):
            return None
        pause = min(self._first_pause * float(2**self.count), _LONGEST_PAUSE)
        self.count += 1
        return pause
