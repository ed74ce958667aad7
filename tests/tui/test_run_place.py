"""The Run place: live, whole, obedient to its keys."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.widgets.chart_pane import ChartPane
from tests.tui.fakes import RecordedActions
from tests.tui.screen import DAMAGED, DEMO, EIGHT_CARDS, EVENING, RESUMED, TOO_BIG, text_of, until

Make = Callable[..., LlmtuiApp]


async def test_a_live_run_is_shown_whole_at_eighty_by_twenty_four(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EVENING)
    app = make_app(EVENING)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "180/300" in text_of(app), "the run's numbers")
        screen = text_of(app)
        for wanted in (
            "running",
            "60 %",
            "epoch 1.80/3",
            "it/s",
            "overall it/s",
            "tokens/s",
            "ETA",
            "smoothed 0.9",
            "eval 1.832",
            "GPU 0",
            "run 29.0",
            "others 2.0",
            "free 49.0",
            "CPU",
            "RAM",
            "37 %",
            "healthy",
            "312 GiB",
        ):
            assert wanted in screen, wanted


async def test_eight_cards_and_a_lost_one(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EIGHT_CARDS)
    app = make_app(EIGHT_CARDS)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "52.0/80.0G" in text_of(app), "the eighth card")
        screen = text_of(app)
        assert "lost" in screen and "GPU 5 is lost" in screen
        assert all(f" {index} " in screen for index in range(8))


async def test_new_steps_appear_and_the_end_is_told(make_app: Make, home: Path) -> None:
    directory = RunDirectory(home / "runs" / DEMO)
    app = make_app(DEMO)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "240/240" in text_of(app), "the finished run")
        assert "finished" in text_of(app)
        with EventWriter(directory.events) as events:
            events.write(ev.WorkerStart(boot_id="other", attempt=2, pid=1))
            events.write(
                ev.Plan(
                    attempt=2,
                    from_step=240,
                    total_steps=300,
                    epochs=3,
                    steps_per_epoch=80,
                    per_device_train_batch_size=8,
                    gradient_accumulation_steps=1,
                    processes=1,
                    effective_batch=8,
                    warmup_steps=0,
                    train_rows=10,
                    val_rows=0,
                    trainable_parameters=1,
                    total_parameters=2,
                    dtype="float32",
                    attention="sdpa",
                )
            )
            events.write(ev.Step(step=241, epoch=3.01, loss=0.5, learning_rate=1e-4))
        await until(pilot, lambda: "241/300" in text_of(app), "the step of the second attempt")


async def test_the_crosshair_shows_what_the_run_wrote_to_the_digit(make_app: Make, home: Path) -> None:
    written = {}
    for line in (home / "runs" / DEMO / "events.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["type"] == "step":
            written[event["step"]] = event
    app = make_app(DEMO)
    async with app.run_test(size=(160, 30)) as pilot:
        await until(pilot, lambda: "240/240" in text_of(app), "the run")
        chart = app.screen.query_one(ChartPane)
        for keys, step in ((["h"], 240), (["h"] * 3, 237), (["H"], 227), (["l", "l"], 229), (["L"] * 3, 240)):
            await pilot.press(*keys)
            event = written[step]
            exact = f"step {step}  loss {event['loss']!r}  lr {event['learning_rate']!r}"
            assert chart.crosshair_values().startswith(exact)
            assert chart.crosshair_values() in text_of(app)
        await pilot.press("escape")
        assert chart.crosshair_values() == ""


async def test_s_goes_round_the_smoothings_and_says_which(make_app: Make) -> None:
    app = make_app(DEMO)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "smoothed 0.9" in text_of(app), "the chart")
        for shown in ("smoothed 0.99", "not smoothed", "smoothed 0.6", "smoothed 0.9 "):
            await pilot.press("s")
            await until(pilot, lambda shown=shown: shown in text_of(app), shown)  # type: ignore[misc]


async def test_log_scale_follow_and_reset(make_app: Make) -> None:
    app = make_app(DEMO)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "240/240" in text_of(app), "the run")
        await pilot.press("Y", "f")
        assert "log" in text_of(app) and "last 200 steps" in text_of(app)
        await pilot.press("0")
        assert "last 200 steps" not in text_of(app)
        assert not app.screen.query_one(ChartPane).view.log


async def test_tab_brings_each_pane_into_the_shared_slot(make_app: Make) -> None:
    app = make_app(EVENING)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "180/300" in text_of(app), "the run")
        await pilot.press("tab", "tab")
        assert "[Log]" in text_of(app) and "shards 3/3" in text_of(app)
        await pilot.press("tab")
        assert "富士山です" in text_of(app)
        await pilot.press("right_square_bracket")
        assert "Name three colours." in text_of(app)
        await pilot.press("tab")
        assert "checkpoints" in text_of(app).lower() and "49 MiB" in text_of(app)
        await pilot.press("tab")
        assert "12 rows were longer" in text_of(app)
        await pilot.press("tab", "shift+tab", "shift+tab")
        assert "49 MiB" in text_of(app)


async def test_plus_gives_a_pane_the_whole_place_and_takes_it_back(make_app: Make) -> None:
    app = make_app(EVENING)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "180/300" in text_of(app), "the run")
        await pilot.press("plus")
        assert "Machine" not in text_of(app) and "Loss" in text_of(app)
        await pilot.press("escape")
        assert "Machine" in text_of(app)


async def test_stop_menu_offers_the_safe_way_first(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EVENING)
    actions = RecordedActions()
    app = make_app(EVENING, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "180/300" in text_of(app), "the run")
        await pilot.press("S")
        assert "80 steps since" in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: actions.done, "the request")
        await pilot.press("S", "j", "j", "enter")
        await until(pilot, lambda: len(actions.done) == 2, "the second request")
        await pilot.press("S", "escape")
        await pilot.press("c")
        await until(pilot, lambda: len(actions.done) == 3, "the checkpoint")
    assert actions.done == [f"stop checkpoint {EVENING}", f"stop kill {EVENING}", f"checkpoint {EVENING}"]


async def test_an_ended_run_cannot_be_stopped_but_resumed(make_app: Make) -> None:
    actions = RecordedActions()
    app = make_app(RESUMED, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "interrupted" in text_of(app), "the run")
        assert "R resume" in text_of(app) and "attempt 2" in text_of(app)
        await pilot.press("S", "c")
        assert "it has ended" in text_of(app)
        await pilot.press("R")
        await until(pilot, lambda: actions.done == [f"resume {RESUMED}"], "the resume")


async def test_what_cannot_be_done_is_said_and_nothing_dies(make_app: Make) -> None:
    actions = RecordedActions()
    actions.fail = True
    app = make_app(TOO_BIG, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "out of GPU memory" in text_of(app), "the cause")
        assert "per_device_train_batch_size to 4" in text_of(app)
        await pilot.press("R")
        await until(pilot, lambda: "no space left [/x]" in text_of(app), "the error")
        assert "free 2 GiB" in text_of(app)
        await pilot.press("enter")
        assert "out of GPU memory" in text_of(app)


async def test_a_damaged_run_is_shown_as_such(make_app: Make, home: Path) -> None:
    app = make_app(DAMAGED)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "run.json is missing or damaged" in text_of(app), "the damage")
        shutil.copy(home / "runs" / DEMO / "run.json", home / "runs" / DAMAGED / "run.json")
        await until(pilot, lambda: "starting" in text_of(app) or "interrupted" in text_of(app), "the mended run")


async def test_a_run_that_vanishes_while_it_is_watched(make_app: Make, home: Path) -> None:
    app = make_app(DEMO)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "240/240" in text_of(app), "the run")
        shutil.rmtree(home / "runs" / DEMO)
        await pilot.press("2")
        await until(pilot, lambda: "evening" in text_of(app), "the list")
        await pilot.press("3")
        await pilot.pause(0.1)
        assert app.is_running


async def test_absurd_numbers_in_the_events_are_shown_as_damage(make_app: Make, home: Path) -> None:
    with open(home / "runs" / DEMO / "events.jsonl", "a", encoding="utf-8") as file:
        file.write('{"type":"step","n":9,"step":99999999999999999999999,"epoch":1,"loss":1e999,"learning_rate":0}\n')
        file.write(
            '{"type":"step","n":9,"step":9223372036854775807,"epoch":-1e308,"loss":1e308,"learning_rate":-1e308}\n'
        )
    app = make_app(DEMO)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "demo" in text_of(app) and "step" in text_of(app), "the run or its damage")
        await pilot.press("Y", "h", "H", "L", "f", "s", "0")
        assert app.is_running


async def test_resize_storms_and_a_single_cell(make_app: Make, hold: Callable[..., None]) -> None:
    hold(EIGHT_CARDS)
    app = make_app(EIGHT_CARDS)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "60/2,000" in text_of(app), "the run")
        for size in (
            (1, 1),
            (2, 3),
            (300, 100),
            (10, 5),
            (80, 1),
            (1, 24),
            (141, 33),
            (139, 31),
            (20, 10),
            (80, 24),
        ) * 2:
            await pilot.resize_terminal(*size)
            await pilot.press("tab", "h", "plus")
        await until(pilot, lambda: "60/2,000" in text_of(app), "the run again")


async def test_labels_are_shown_with_their_exact_match(make_app: Make, home: Path) -> None:
    directory = RunDirectory(home / "runs" / DEMO)
    by_label = {
        "neg[/red]": ev.LabelScore(rows=30, exact_match=0.9),
        "肯定\x1b": ev.LabelScore(rows=10, exact_match=0.5),
    }
    with EventWriter(directory.events) as events:
        events.write(ev.Eval(step=240, loss=1.25, exact_match=0.8, by_label=by_label))
    app = make_app(DEMO)
    async with app.run_test(size=(200, 60)) as pilot:
        await until(pilot, lambda: "exact match 80.0 %" in text_of(app), "the exact match beside the eval loss")
        screen = text_of(app)
        assert "labels answered exactly at step 240: 80.0 %" in screen
        assert "90.0 % of 30  neg[/red]" in screen
        assert "50.0 % of 10  肯定" in screen
