"""The Presets place: what can be run, what it does, and the way from there to a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmtui.core.home import user_presets_folder
from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.widgets.facts_pane import FactsPane
from llmtui.tui.widgets.list_pane import ListPane
from tests.data.make_runs import RUNS
from tests.tui.fakes import FixedForecast, RecordedActions
from tests.tui.screen import EVENING, text_of, until

Make = Callable[..., LlmtuiApp]


def choose(app: LlmtuiApp, name: str) -> None:
    pane = app.screen.query_one("#presets", ListPane)
    pane.put_cursor(str(RUNS.parent / "presets" / f"{name}.yaml"))


async def test_a_preset_is_explained_beside_the_list(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(200, 40)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        choose(app, "island")
        await until(pilot, lambda: "rows a step" in text_of(app), "the details")
        screen = text_of(app)
        for wanted in (
            "16 × 2 accumulated = 32 rows a step",
            "all weights",
            "every 50 steps on 80 rows",
            "warm-up 5% of the steps",
            "learns the answer only",
            "answers 2 prompts",
            "5 epochs",
            "bundled",
        ):
            assert wanted in screen, wanted
        choose(app, "opencalm")
        await until(pilot, lambda: "LoRA r 8, α 16, dropout 0.05 on query_key_value" in text_of(app), "the other one")


async def test_a_broken_preset_shows_every_problem_with_its_cure(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "broken" in text_of(app), "the list")
        choose(app, "broken")
        await until(pilot, lambda: "line 4" in text_of(app), "its problems")
        screen = text_of(app)
        for wanted in ("quantization", "max_length", "rank", "learning_rate", "cure"):
            assert wanted in screen, wanted
        await pilot.press("r")
        await until(pilot, lambda: "Cannot start" in text_of(app), "the refusal")
        await pilot.press("enter")
        assert app.current_mode == "presets"


async def test_r_shows_what_will_happen_and_enter_starts_it(make_app: Make, home: Path) -> None:
    actions = RecordedActions(RunDirectory(home / "runs" / EVENING))
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "island" in text_of(app), "the list")
        choose(app, "island")
        await pilot.press("r")
        await until(pilot, lambda: "Start island" in text_of(app), "the question")
        await pilot.press("escape")
        assert actions.done == []
        await pilot.press("r")
        await until(pilot, lambda: "Start island" in text_of(app), "the question again")
        await pilot.press("enter")
        await until(pilot, lambda: "180/300" in text_of(app), "the run place")
        assert actions.done == ["start island"]
        assert app.current_mode == "run"


async def test_the_keys_of_a_long_question_are_never_pushed_off_the_screen(llmtui_home: Path, strict: None) -> None:
    app = LlmtuiApp(llmtui_home)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "an epoch" in text_of(app), "the demo's forecast")
        await pilot.press("r")
        await until(pilot, lambda: "Start demo" in text_of(app), "the question")
        for height in (24, 14, 8):
            await pilot.resize_terminal(80, height)
            await until(pilot, lambda: "enter start" in text_of(app), f"the keys at {height} lines")
            await pilot.press("G")
            last = app.screen.query_one(FactsPane).facts[-1].text.split()[-1]
            await until(pilot, lambda last=last: last in text_of(app), f"the last line at {height} lines")


async def test_the_editor_of_the_shell_gets_a_copy_of_ones_own(make_app: Make) -> None:
    actions = RecordedActions()
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "island" in text_of(app), "the list")
        choose(app, "island")
        entry = next(entry for entry in actions.presets() if entry.name == "island")
        path = actions.own_copy(entry)
        assert path == user_presets_folder() / "island.yaml"
        assert actions.own_copy(entry) == path
        await pilot.press("1")


async def test_only_ones_own_presets_can_be_deleted(make_app: Make) -> None:
    own = user_presets_folder() / "mine.yaml"
    own.write_text("model: {name_or_path: x}\n", encoding="utf-8")
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "mine" in text_of(app), "the list")
        choose(app, "island")
        await pilot.press("D")
        assert "only your own" in text_of(app)
        app.screen.query_one("#presets", ListPane).put_cursor(str(own))
        await pilot.press("D", *"mine", "enter")
        await until(pilot, lambda: not own.exists(), "the deletion")


async def test_the_bundled_demo_has_a_real_forecast(llmtui_home: Path, strict: None) -> None:
    app = LlmtuiApp(llmtui_home)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: "demo" in text_of(app), "the library")
        await until(pilot, lambda: "memory" in text_of(app) and "≈" in text_of(app), "the forecast")
        assert "an epoch" in text_of(app)


async def test_what_a_file_lacks_is_no_reason_to_stop(make_app: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, loaded: object) -> None:
        raise OSError(5, "the disk does not answer")

    monkeypatch.setattr(FixedForecast, "forecast", fail)
    app = make_app()
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: "island" in text_of(app), "the list")
        choose(app, "island")
        await until(pilot, lambda: "the disk does not answer" in text_of(app), "the reason")
        assert "32 rows a step" in text_of(app)


async def test_filter(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "opencalm" in text_of(app), "the list")
        await pilot.press("slash", *"dolly")
        assert [row.cells[0][0] for row in app.screen.query_one("#presets", ListPane).rows] == ["opencalm"]


async def test_keys_in_a_burst_are_obeyed_in_order(make_app: Make, home: Path) -> None:
    actions = RecordedActions(RunDirectory(home / "runs" / EVENING))
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "island" in text_of(app), "the list")
        choose(app, "island")
        await until(pilot, lambda: "all weights" in text_of(app), "the details")
        for key in ("r", "enter"):
            app.simulate_key(key)
        await until(pilot, lambda: actions.done == ["start island"], "the start")
        await until(pilot, lambda: "180/300" in text_of(app), "the run")
        for key in ("tab", "tab", "plus"):
            app.simulate_key(key)
        await until(pilot, lambda: "Machine" not in text_of(app) and "shards 3/3" in text_of(app), "the log alone")
        for key in ("escape", "S", "enter"):
            app.simulate_key(key)
        await until(pilot, lambda: "Machine" in text_of(app), "the whole place")
