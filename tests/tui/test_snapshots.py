"""Every place in its main states, small and large, from fixed run directories.

After a wanted change: pytest tests/tui/test_snapshots.py --snapshot-update, and look at the pictures.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from llmtui.tui.app import LlmtuiApp
from llmtui.tui.glyphs import ASCII
from llmtui.tui.widgets.list_pane import ListPane
from llmtui.tui.widgets.pane import Drawing
from tests.data.make_runs import RUNS
from tests.tui.fakes import RecordedActions
from tests.tui.made_data import found, island_rows
from tests.tui.screen import (
    DEMO,
    DIVERGED,
    EIGHT_CARDS,
    EVENING,
    HOSTILE,
    QUEUED,
    RESUMED,
    TOO_BIG,
    text_of,
    until,
)

Make = Callable[..., LlmtuiApp]
Hold = Callable[..., None]
Compare = Callable[..., bool]
SIZES = [pytest.param((80, 24), id="80x24"), pytest.param((200, 50), id="200x50")]

READY = {
    EVENING: "180/300", EIGHT_CARDS: "60/2,000", DEMO: "240/240", TOO_BIG: "37/900", DIVERGED: "150/500",
    RESUMED: "90/400", HOSTILE: "20/50", QUEUED: "waits for GPU 0",
}  # fmt: skip


@pytest.fixture(autouse=True)
def alive(hold: Hold) -> None:
    """The runs that are alive in the pictures."""
    hold(EVENING)
    hold(EIGHT_CARDS)
    hold(QUEUED, worker=False)


def when(shown: str, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Wait until a text is there, then press keys."""

    async def before(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: shown in text_of(pilot.app), shown)
        await pilot.press(*keys)
        await pilot.pause()

    return before


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "run", [EVENING, EIGHT_CARDS, DEMO, TOO_BIG, DIVERGED, RESUMED, HOSTILE, QUEUED], ids=lambda r: r[16:]
)
def test_run(snap_compare: Compare, make_app: Make, run: str, size: tuple[int, int]) -> None:
    assert snap_compare(make_app(run), terminal_size=size, run_before=when(READY[run]))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("crosshair", ["Y", "H", "H"]),
        ("samples", ["tab", "tab", "tab"]),
        ("checkpoints", ["tab"] * 4),
        ("full-log", ["tab", "tab", "plus"]),
        ("stop-menu", ["S"]),
        ("help", ["question_mark"]),
        ("palette", ["colon", *"check"]),
        ("delete", ["D"]),
        ("told", ["ctrl+c"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_run_with_keys(snap_compare: Compare, make_app: Make, name: str, keys: list[str]) -> None:
    run = DEMO if name == "delete" else EVENING
    assert snap_compare(make_app(run), terminal_size=(80, 24), run_before=when(READY[run], *keys))


@pytest.mark.parametrize("size", SIZES)
def test_runs(snap_compare: Compare, make_app: Make, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: "Runs  9, 3 alive" in text_of(pilot.app), "the list")
        await until(pilot, lambda: "interrupted" in text_of(pilot.app), "every state")

    assert snap_compare(make_app(), terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["opencalm", "学習テスト①"])
def test_presets(snap_compare: Compare, make_app: Make, name: str, size: tuple[int, int]) -> None:
    ready = {"opencalm": "256 tokens", "学習テスト①": "行.jsonl"}[name]

    async def before(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "island" in text_of(pilot.app), "the list")
        pilot.app.screen.query_one("#presets", ListPane).put_cursor(str(RUNS.parent / "presets" / f"{name}.yaml"))
        await until(pilot, lambda: ready in text_of(pilot.app), "the details")

    assert snap_compare(make_app(), terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [*SIZES, pytest.param((30, 10), id="30x10")])
@pytest.mark.parametrize("kind", ["colour", "no-colour", "ascii"])
def test_data(
    snap_compare: Compare, make_app: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str,
    size: tuple[int, int],
) -> None:  # fmt: skip
    if kind == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(None, RecordedActions(found=found(tmp_path, island_rows())))
    if kind == "ascii":
        monkeypatch.setattr(Drawing, "glyphs", ASCII)

    async def before(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "island" in text_of(pilot.app), "the list")
        pilot.app.screen.query_one("#presets", ListPane).put_cursor(str(RUNS.parent / "presets" / "island.yaml"))
        await pilot.press("i")
        await until(pilot, lambda: "row 1/" in text_of(pilot.app), "the rows")
        await pilot.press("slash", *"lazy", "enter")
        await until(pilot, lambda: "the lazy" in text_of(pilot.app), "the hit")
        await until(pilot, lambda: "? help" in text_of(pilot.app), "the footer, when what was said is over")

    assert snap_compare(app, terminal_size=size, run_before=before)


def test_start(snap_compare: Compare, make_app: Make) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "island" in text_of(pilot.app), "the list")
        pilot.app.screen.query_one("#presets", ListPane).put_cursor(str(RUNS.parent / "presets" / "island.yaml"))
        await pilot.press("r")
        await until(pilot, lambda: "Start island" in text_of(pilot.app), "the question")

    assert snap_compare(make_app(), terminal_size=(80, 24), run_before=before)


def test_without_colour(snap_compare: Compare, make_app: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(make_app(EVENING), terminal_size=(80, 24), run_before=when(READY[EVENING]))


def test_without_utf8(snap_compare: Compare, make_app: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(EVENING)
    monkeypatch.setattr(Drawing, "glyphs", ASCII)
    assert snap_compare(app, terminal_size=(80, 24), run_before=when(READY[EVENING], "tab", "tab", "tab"))


def test_first_start(snap_compare: Compare, home: Path) -> None:
    shutil.rmtree(home / "runs")
    app = LlmtuiApp(home)
    app.home_shown = "~/.local/share/llmtui"

    async def before(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: "No run yet." in text_of(pilot.app), "the beginning")

    assert snap_compare(app, terminal_size=(80, 24), run_before=before)
