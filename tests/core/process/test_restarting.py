"""Restarts: growing pauses, a limit, and none for what only repeats."""

from __future__ import annotations

import json

from llmtui.core.preset import Preset, parse_preset
from llmtui.core.process.causes import Cause
from llmtui.core.process.restarting import Restarts

KILLED = Cause("interrupted", "killed by SIGKILL", "signal", again=True)
CUDA = Cause("failed", "CUDA error at step 7", "cuda", again=True)


def preset(restarts: int = 3, resume: str = "auto") -> Preset:
    names = {"model": {"name_or_path": "x/y"}, "dataset": {"name_or_path": "x/z"}}
    text = json.dumps(names | {"limits": {"restarts": restarts}, "checkpoints": {"resume": resume}})
    return parse_preset(text).preset


def test_pauses_grow_and_the_limit_holds() -> None:
    restarts = Restarts(preset(3), first_pause=5)
    assert [restarts.pause_before_next(KILLED, step) for step in (10, 20, 30, 40)] == [5, 10, 20, None]


def test_the_same_error_without_a_new_step_is_not_tried_again() -> None:
    restarts = Restarts(preset(9), first_pause=1)
    assert restarts.pause_before_next(CUDA, 7) == 1
    assert restarts.pause_before_next(CUDA, 7) is None


def test_an_error_further_on_is_another_one() -> None:
    restarts = Restarts(preset(9), first_pause=1)
    assert restarts.pause_before_next(CUDA, 7) == 1
    assert restarts.pause_before_next(CUDA, 900) == 2


def test_kills_without_progress_are_given_up_at_the_second() -> None:
    restarts = Restarts(preset(9), first_pause=1)
    assert restarts.pause_before_next(KILLED, 0) == 1
    assert restarts.pause_before_next(KILLED, 0) is None


def test_never_means_never_but_a_hang_has_a_word_of_its_own() -> None:
    hang = Cause("failed", "it hung", "hang", again=True)
    assert Restarts(preset(3, "never")).pause_before_next(KILLED, 5) is None
    assert Restarts(preset(3, "never"), first_pause=1).pause_before_next(hang, 5) == 1
    assert Restarts(preset(3)).pause_before_next(Cause("failed", "row 3", "data", exit_code=2), 5) is None
    assert Restarts(preset(0)).pause_before_next(KILLED, 5) is None


def test_a_pause_is_never_longer_than_ten_minutes() -> None:
    restarts = Restarts(preset(99), first_pause=5)
    assert max(restarts.pause_before_next(KILLED, step) or 0 for step in range(1, 60)) == 600
