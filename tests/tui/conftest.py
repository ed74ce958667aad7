"""Fixed runs, fixed clocks, and locks held for the runs that are to look alive."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from llmtui.core.runs import fold, locks
from llmtui.core.runs.directory import RunDirectory
from tests.data.make_runs import BOOT, NIGHT, RUNS

EVENING = "20260531-190000-evening"
EIGHT_CARDS = "20260531-191500-eight-cards"
DEMO = "20260530-201500-demo"
TOO_BIG = "20260530-221500-too-big"
DIVERGED = "20260530-231500-diverged"
RESUMED = "20260531-020000-resumed"
HOSTILE = "20260531-030000-学習テスト①-👨‍👩‍👧"
DAMAGED = "20260531-040000-damaged"
QUEUED = "20260531-192000-next"


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 19:22 UTC, a few seconds after the last event of the living runs."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: NIGHT + 1_320.0)
    monkeypatch.setattr(fold, "boot_id", lambda: BOOT)
    monkeypatch.setattr(fold, "boot_seconds", lambda: 5_000.0 + 56.6)


@pytest.fixture
def home(llmtui_home: Path) -> Path:
    """A home folder with the fixed runs in it."""
    shutil.copytree(RUNS, llmtui_home / "runs")
    return llmtui_home


@pytest.fixture
def hold(home: Path) -> Iterator[Callable[..., None]]:
    """Make a run look alive: `hold(id)` for both of its locks, `hold(id, worker=False)` for the supervisor's."""
    with ExitStack() as held:

        def take(run_id: str, *, supervisor: bool = True, worker: bool = True) -> None:
            directory = RunDirectory(home / "runs" / run_id)
            if supervisor:
                held.enter_context(locks.take(directory.supervisor_lock))
            if worker:
                held.enter_context(locks.take(directory.worker_lock, "shared"))

        yield take
