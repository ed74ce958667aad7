"""Keys that arrive all at once, as over a slow line, do what they would have done one by one."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Input

from llmtui.tui.app import LlmtuiApp
from llmtui.tui.screens.start_run import StartDialog
from llmtui.tui.widgets.list_pane import ListPane
from tests.tui.editor.small_app import burst
from tests.tui.screen import DEMO, text_of, until

Make = Callable[..., LlmtuiApp]


def listed(app: LlmtuiApp) -> list[str]:
    return [str(row.key) for row in app.screen.query_one(ListPane).rows]


async def test_what_is_typed_behind_the_slash_filters_and_presses_nothing(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        burst(app, "slash", "=redoxqDS", "ctrl+u", "=island", "enter")
        await until(pilot, lambda: not app.screen.query(Input) and len(listed(app)) == 1, "the filter, kept")
        assert listed(app)[0].endswith("island.yaml")
        assert not isinstance(app.screen, StartDialog) and app.current_mode == "presets"


async def test_places_filters_and_dialogs_in_one_burst(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        burst(app, "2", "slash", "=demo fin", "enter")
        await until(pilot, lambda: app.current_mode == "runs" and listed(app) == [DEMO], "the run's line")
        burst(app, "k", "g", "enter")
        await until(pilot, lambda: app.current_mode == "run", "the run")
        assert app.run_to_show().id == DEMO  # type: ignore[union-attr]
        burst(app, "question_mark", "escape", "2", "slash", "ctrl+u", "escape", "1", "question_mark")
        await until(pilot, lambda: app.current_mode == "presets" and len(app.screen_stack) == 2, "the help")


async def test_a_paste_keeps_its_place_between_keys(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        burst(app, "slash")
        app.post_message(events.Paste("isl"))
        burst(app, "=and")
        await until(pilot, lambda: [f.value for f in app.screen.query(Input)] == ["island"], "the filter")


async def test_a_widget_that_goes_with_its_key_holds_nothing_up(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        for _ in range(20):
            burst(app, "question_mark", "escape", "2", "1", "slash", "escape")
        burst(app, "2")
        await until(pilot, lambda: app.current_mode == "runs", "the last key")
