"""Fixed runs, fixed clocks, and locks held for the runs that are to look alive."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from llmtui.core.home import user_presets_folder
from llmtui.core.runs import fold, locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.events import Hardware
from llmtui.tui import reading
from llmtui.tui.actions import Actions
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.widgets.pane import Drawing
from tests.data.make_runs import BOOT, NIGHT, RUNS
from tests.tui.fakes import FixedForecast


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 19:22 UTC, a few seconds after the last event of the living runs."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: NIGHT + 1_320.0)
    monkeypatch.setattr(fold, "boot_id", lambda: BOOT)
    monkeypatch.setattr(fold, "boot_seconds", lambda: 5_000.0 + 56.6)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pane that cannot draw fails the test."""
    monkeypatch.setattr(Drawing, "strict", True)


@pytest.fixture
def screens(frozen: None, strict: None, library: None, machine: Hardware) -> None:
    """Everything that keeps screens the same from run to run."""


@pytest.fixture
def home(llmtui_home: Path, screens: None) -> Path:
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


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Hardware:
    """What this machine shows when no supervisor measures it."""
    sample = Hardware(cpu_percent=12.0, ram_used=3 << 30, ram_total=24 << 30, disk_free=77 << 30, disk_total=100 << 30)
    monkeypatch.setattr(reading, "sample_machine", lambda folder: sample)
    return sample


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library of our own, in a working folder without presets."""

    def folders() -> list[tuple[str, Path]]:
        return [("user", user_presets_folder()), ("bundled", RUNS.parent / "presets")]

    monkeypatch.setattr("llmtui.core.preset.library._folders", folders)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def make_app(home: Path) -> Callable[..., LlmtuiApp]:
    """The app over the fixed runs; its home folder is shown under a name that does not change."""

    def make(run_id: str | None = None, actions: Actions | None = None) -> LlmtuiApp:
        directory = RunDirectory(home / "runs" / run_id) if run_id else None
        app = LlmtuiApp(home, open_run=directory, actions=actions or FixedForecast())
        app.home_shown = "~/.local/share/llmtui"
        return app

    return make
