"""The Runs place: all runs, however damaged, sorted and filtered, with what can be done to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.widgets.list_pane import ListPane
from tests.tui.fakes import RecordedActions
from tests.tui.screen import DEMO, EVENING, QUEUED, text_of, until

Make = Callable[..., LlmtuiApp]


async def open_runs(app: LlmtuiApp, pilot: object) -> None:
    await pilot.press("2")  # type: ignore[attr-defined]
    await until(pilot, lambda: "Runs  9" in text_of(app), "the list")  # type: ignore[arg-type]


async def test_every_run_has_its_line(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EVENING)
    hold(QUEUED, worker=False)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_runs(app, pilot)
        await until(pilot, lambda: "2 alive" in text_of(app), "the living ones")
        screen = text_of(app)
        for state in ("queued", "running", "finished", "failed", "stopped", "interrupted", "damaged"):
            assert state in screen, state
        line = next(line for line in screen.splitlines() if "evening" in line)
        for wanted in ("60 %", "1.526", "5"):
            assert wanted in line
        assert "NaN" in screen  # the loss of the run that diverged


async def test_the_list_is_the_same_story_as_the_run(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EVENING)
    app = make_app()
    async with app.run_test(size=(200, 50)) as pilot:
        await open_runs(app, pilot)
        await until(pilot, lambda: "180/300" in text_of(app), "the numbers")
        app.screen.query_one(ListPane).put_cursor(EVENING)
        await pilot.press("enter")
        await until(pilot, lambda: "overall it/s" in text_of(app), "the run")
        assert "180/300" in text_of(app)
        await pilot.press("escape")
        assert "Runs  9" in text_of(app)
        assert app.screen.query_one(ListPane).cursor_key == EVENING


async def test_filter_and_sort(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 24)) as pilot:
        await open_runs(app, pilot)
        await pilot.press("slash", *"demo fin")
        rows = app.screen.query_one(ListPane).rows
        assert [row.key for row in rows] == [DEMO]
        await pilot.press("enter")
        assert "filter: demo fin" in text_of(app)
        await pilot.press("escape")
        assert len(app.screen.query_one(ListPane).rows) == 9
        await pilot.press("o")
        names = [row.cells[0][0] for row in app.screen.query_one(ListPane).rows if not row.key.endswith("damaged")]
        assert names == sorted(names, key=str.casefold)
        await pilot.press("o", "o")
        assert "by loss" in text_of(app)


async def test_keys_typed_into_the_filter_are_only_typed(make_app: Make) -> None:
    actions = RecordedActions()
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_runs(app, pilot)
        await pilot.press("slash", *"qDSR123")
        assert app.is_running and app.current_mode == "runs"
        assert actions.done == []
        await pilot.press("escape")
        await pilot.press("j", "j")
        assert app.screen.query_one(ListPane).rows


async def test_deleting_needs_the_name_and_never_takes_a_live_run(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EVENING)
    actions = RecordedActions()
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_runs(app, pilot)
        await until(pilot, lambda: "1 alive" in text_of(app), "the living one")
        pane = app.screen.query_one(ListPane)
        pane.put_cursor(EVENING)
        await pilot.press("D")
        assert "stop it first" in text_of(app)
        pane.put_cursor(DEMO)
        await pilot.press("D", *"wrong", "enter")
        assert actions.done == []
        await pilot.press(*"demo", "enter")
        await until(pilot, lambda: actions.done == [f"delete {DEMO}"], "the deletion")


async def test_export_says_where_it_was_written(make_app: Make) -> None:
    app = make_app(None, RecordedActions())
    async with app.run_test(size=(200, 24)) as pilot:
        await open_runs(app, pilot)
        app.screen.query_one(ListPane).put_cursor(DEMO)
        await pilot.press("x")
        await until(pilot, lambda: "summary.md" in text_of(app), "the path")


async def test_no_run_yet_says_where_to_begin(llmtui_home: Path, screens: None) -> None:
    app = LlmtuiApp(llmtui_home)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "No run yet." in text_of(app), "the beginning")
        assert "llmtui run demo" in text_of(app)
        await pilot.press("S", "R", "c", "x", "D", "enter", "y", "o", "3")
        await until(pilot, lambda: "no run yet" in text_of(app), "the empty Run place")
        await pilot.press("S", "R", "c", "x", "D", "s", "Y", "h", "f", "0", "plus", "tab", "y")
        assert app.is_running


async def test_a_home_that_cannot_be_read(llmtui_home: Path, screens: None) -> None:
    (llmtui_home / "runs").write_text("a file", encoding="utf-8")
    app = LlmtuiApp(llmtui_home)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "the runs cannot be listed" in text_of(app), "the reason")


async def test_five_hundred_runs_do_not_hold_the_keys_up(make_app: Make, home: Path) -> None:
    source = home / "runs" / DEMO
    for number in range(500):
        target = home / "runs" / f"20250101-{number:06d}-demo"
        target.mkdir()
        for name in ("run.json", "events.jsonl", "monitor.jsonl"):
            (target / name).symlink_to(source / name)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "Runs  509" in text_of(app), "all runs", limit=40)
        await pilot.press("G")
        assert app.screen.query_one(ListPane).cursor_key == "20250101-000000-demo"
        assert RunDirectory(home / "runs" / "20250101-000000-demo").id in (
            app.screen.query_one(ListPane).cursor_key or ""
        )
