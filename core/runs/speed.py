"""Speeds and time left, from session steps only."""

from __future__ import annotations

from typing import Final

from llmtui.core.runs.state import Curve, Eta, Speed

_WINDOW_STEPS: Final = 100
_WINDOW_SECONDS: Final = 120.0


def speed(curve: Curve, session_start: int, training_seconds: float | None, session_steps: int) -> Speed:
    """Session speeds.

    Args:
        curve: the curve; entries from index `session_start` on belong to this attempt.
        training_seconds: from the start of training to now or its end, all attempts, pauses included.
        session_steps: steps run in that time, all attempts.
    """
    count, seconds, tokens = 0, 0.0, 0
    for i in range(curve.length - 1, max(session_start, curve.length - _WINDOW_STEPS) - 1, -1):
        count += 1
        seconds += curve.seconds[i]
        tokens += curve.tokens[i]
        if seconds >= _WINDOW_SECONDS:
            break
    known = count > 0 and seconds > 0
    overall = session_steps / training_seconds if session_steps and training_seconds else None
    return Speed(
        it_per_second=count / seconds if known else None,
        overall_it_per_second=overall,
        tokens_per_second=tokens / seconds if known else None,
        training_seconds=training_seconds,
    )


def eta(remaining_steps: int, seconds_per_step: float | None, pause_per_step: float | None, now_t: float) -> Eta | None:
    """Time left: remaining steps at the window's pace, plus the pauses seen so far per step."""
    if seconds_per_step is None or remaining_steps < 0:
        return None
    pause = pause_per_step or 0.0
    left = remaining_steps * (seconds_per_step + pause)
    includes = "evals and saves as seen so far" if pause > 0 else "steps only, no eval or save seen yet"
    return Eta(seconds=left, finish_t=now_t + left, includes=includes)
