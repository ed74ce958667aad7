"""The key table is the truth: every entry does something, nothing is bound beside it, no forbidden key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llmtui.tui.app import LlmtuiApp
from llmtui.tui.keys import KEYS, SCOPE_NAMES, keys_of
from llmtui.tui.screens.data import DataScreen
from llmtui.tui.screens.presets import PresetsPlace
from llmtui.tui.screens.run import RunPlace
from llmtui.tui.screens.runs import RunsPlace
from llmtui.tui.widgets.list_pane import ListPane
from llmtui.tui.widgets.run_details import SamplesPane
from llmtui.tui.widgets.text_pane import TextPane
from tests.tui.fakes import RecordedActions
from tests.tui.screen import EVENING, text_of, until

Make = Callable[..., LlmtuiApp]
OWNERS: dict[str, type] = {
    "app": LlmtuiApp, "list": ListPane, "text": TextPane, "presets": PresetsPlace, "runs": RunsPlace, "run": RunPlace,
    "samples": SamplesPane, "data": DataScreen,
}  # fmt: skip
FORBIDDEN = {f"ctrl+{letter}" for letter in "bashjoq"}


def names(keys: str) -> list[str]:
    return keys.split(",")


@pytest.mark.parametrize("key", [key for key in KEYS if key.scope in OWNERS], ids=lambda key: f"{key.scope}-{key.keys}")
def test_every_entry_does_something(key: object) -> None:
    action = key.action.partition("(")[0]  # type: ignore[attr-defined]
    assert hasattr(OWNERS[key.scope], f"action_{action}")  # type: ignore[attr-defined]


def test_no_scope_has_a_key_twice_and_every_scope_has_a_name() -> None:
    taken: set[tuple[str, str]] = set()
    for key in KEYS:
        for name in names(key.keys):
            assert (key.scope, name) not in taken, (key.scope, name)
            taken.add((key.scope, name))
        assert key.scope in SCOPE_NAMES


def test_no_key_that_terminals_and_tmux_keep_for_themselves() -> None:
    used = {name for key in KEYS for name in names(key.keys)}
    assert not used & FORBIDDEN
    assert not [name for name in used if name.startswith("alt+")]


def test_destructive_keys_are_capital_letters() -> None:
    for key in KEYS:
        if key.action in ("delete", "stop_menu"):
            assert key.keys.isupper()


def test_an_inner_key_hides_the_outer_one() -> None:
    shown = keys_of("samples", "text", "run", "app")
    assert [key.scope for key in shown if key.keys == "right_square_bracket"] == ["samples"]
    assert len({name for key in shown for name in names(key.keys)}) == sum(len(names(key.keys)) for key in shown)


@pytest.mark.parametrize("place", ["presets", "runs", "run"])
async def test_help_shows_exactly_the_keys_that_work(make_app: Make, place: str) -> None:
    app = make_app(EVENING if place == "run" else None)
    async with app.run_test(size=(120, 80)) as pilot:
        await pilot.press({"presets": "1", "runs": "2", "run": "3"}[place])
        await pilot.pause()
        assert app.place is not None
        entries = keys_of(*app.place.scopes())
        await pilot.press("question_mark")
        await until(pilot, lambda: "Everywhere" in text_of(app), "the help")
        screen = text_of(app)
        for key in entries:
            assert key.help[:40] in screen, key
        bound = set(app.place.active_bindings) if hasattr(app.place, "active_bindings") else set()
        for key in entries:
            assert set(names(key.keys)) <= bound | {"colon", "plus"}, key


async def test_every_action_of_a_place_is_in_the_palette_and_runs_from_there(make_app: Make) -> None:
    actions = RecordedActions()
    app = make_app(EVENING, actions)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: "180/300" in text_of(app), "the run")
        for typed, shown in (("smoothing", "smoothed 0.99"), ("logarithmic", "log"), ("keys that work", "Everywhere")):
            await pilot.press("colon", *typed)
            await pilot.press("enter")
            await until(pilot, lambda shown=shown: shown in text_of(app), shown)  # type: ignore[misc]
        await pilot.press("escape")
        await pilot.press("ctrl+p", *"go on from its last", "enter")
        await until(pilot, lambda: actions.done == [f"resume {EVENING}"], "the resume")
        await pilot.press("colon", *"all runs", "enter")
        await until(pilot, lambda: "Runs  9" in text_of(app), "the Runs place")


async def test_every_key_of_every_place_can_be_pressed_at_any_moment(make_app: Make) -> None:
    """Nothing dies, whatever is pressed where; only leaving is left out."""
    app = make_app(EVENING, RecordedActions())
    pressed = {name for key in KEYS for name in names(key.keys)} - {"q", "E", "1", "2", "3", "escape"}
    async with app.run_test(size=(80, 24)) as pilot:
        for place in "123":
            await pilot.press(place)
            for name in sorted(pressed):
                await pilot.press(name)
                for _ in range(4):
                    if len(app.screen_stack) == 1:
                        break
                    await pilot.press("escape")
                await pilot.press("escape", place)
                assert app.is_running, name
