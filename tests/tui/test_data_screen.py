"""The Data screen: what a preset is trained on, in numbers and row by row; looked at with real prepared data."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input

from llmtui.core.errors import DataError
from llmtui.core.preset import LoadedPreset
from llmtui.core.process.child import Progress
from llmtui.tui.actions import DataFound
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.glyphs import ASCII
from llmtui.tui.row_lines import row_lines
from llmtui.tui.screens.data import DataScreen
from llmtui.tui.screens.presets import PresetsPlace
from llmtui.tui.theme import Palette
from llmtui.tui.widgets.lengths_pane import merged
from llmtui.tui.widgets.list_pane import ListPane
from llmtui.tui.widgets.pane import Drawing
from llmtui.tui.widgets.row_pane import RowPane
from tests.data.make_runs import RUNS
from tests.tui.fakes import FixedForecast, RecordedActions
from tests.tui.made_data import HOSTILE_ANSWER, found, island_rows
from tests.tui.screen import text_of, until
from tests.tui.test_hostile_text import CONTROL

Make = Callable[..., LlmtuiApp]
SIZES = [(80, 24), (30, 10), (200, 50)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFound:
    return found(tmp_path_factory.mktemp("data"), island_rows())


@pytest.fixture(scope="module")
def train_only(tmp_path_factory: pytest.TempPathFactory) -> DataFound:
    rows = [{"text": "one line"}]
    return found(tmp_path_factory.mktemp("one"), rows, "template: text, val_size: 0")


async def open_data(pilot: Pilot[None], ready: str = "row 1/") -> DataScreen:
    """From the list of presets to the data of the preset `island`."""
    app = pilot.app
    await until(pilot, lambda: "island" in text_of(app), "the list")
    pane = app.screen.query_one("#presets", ListPane)
    pane.put_cursor(str(RUNS.parent / "presets" / "island.yaml"))
    await pilot.press("i")
    await until(pilot, lambda: isinstance(app.screen, DataScreen), "the screen")
    await until(pilot, lambda: ready in text_of(app), ready)
    assert isinstance(app.screen, DataScreen)
    return app.screen


def place_of(screen: DataScreen) -> tuple[str, int]:
    row = screen.row()
    assert row is not None
    return row.side, row.index


async def shown_all(pilot: Pilot[None]) -> str:
    """Everything that the focused pane shows when it is scrolled to its end."""
    await pilot.press("plus", "g")
    seen = text_of(pilot.app)
    for _ in range(6):
        await pilot.press("pagedown")
        seen += text_of(pilot.app)
    await pilot.press("plus")
    return seen


async def test_the_numbers_are_those_of_the_prepared_data(make_app: Make, data: DataFound) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=(200, 50)) as pilot:
        await open_data(pilot)
        screen = text_of(app)
    counted = data.counted
    for wanted in (
        "Data of island",
        f"{counted.train.rows} rows, {counted.train.tokens:,} tokens, {counted.train.trained_tokens:,} trained",
        f"{counted.val.rows} rows, {counted.val.tokens:,} tokens" if counted.val else "?",
        "1 row and 1 held out without end token",
        f"{counted.total_steps} in 3 epochs",
        f"{counted.steps_per_epoch} steps, {counted.tokens_per_epoch:,} tokens",
        "4 rows a step",
        "2 rows are cut at 400 tokens",
        "rows.jsonl: 50 rows",
        "1 row: no output",
        "max_length 400 2 longer: cut",
        f"longest {counted.lengths.longest:,}",
        "this preset",
    ):
        assert wanted in screen, wanted
    assert screen.count("1 row: no output") == 1
    for strategy, share in counted.padding.items():
        line = next(line for line in screen.splitlines() if strategy in line)
        assert f"{share:.0%}" in line
        assert ("❯" in line) == (strategy == "group_by_length")


@pytest.mark.parametrize("most", range(2, 30))
def test_bars_together_keep_every_row_and_max_length_between_them(data: DataFound, most: int) -> None:
    lengths = data.counted.lengths
    bins = merged(lengths.bins, most, lengths.max_length)
    assert len(bins) <= most
    assert sum(b.rows for b in bins) == lengths.rows
    assert sum(b.rows for b in bins if b.first > lengths.max_length) == lengths.longer
    assert not [b for b in bins if b.first <= lengths.max_length < b.last]
    assert bins[0].first == lengths.bins[0].first
    assert bins[-1].last == lengths.bins[-1].last
    assert all(a.last + 1 == b.first for a, b in pairwise(bins))


async def test_rows_go_on_and_back_and_stop_at_the_ends(make_app: Make, data: DataFound) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_data(pilot)
        last = data.counted.train.rows - 1
        await pilot.press("[")
        assert place_of(screen) == ("train", 0)
        assert "first training row" in text_of(app)
        await pilot.press("]", "]", "n", "N", "[")
        assert place_of(screen) == ("train", 1)
        assert f"Training row 2/{last + 1}" in text_of(app)
        await pilot.press(*"]" * last)
        assert place_of(screen) == ("train", last)
        assert "last training row" in text_of(app)
        await pilot.press("t", "n")
        assert place_of(screen) == ("val", 1)
        assert "Validation row 2/8" in text_of(app)
        await pilot.press("t")
        assert place_of(screen) == ("train", last)


async def test_a_row_tells_its_place_its_tokens_and_what_is_special_of_it(make_app: Make, data: DataFound) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_data(pilot)
        cut = next(i for i in range(data.preview.rows("train")) if data.preview.row("train", i).cut)
        row = data.preview.row("train", cut)
        await pilot.press("slash", *row.place.removeprefix("rows.jsonl"), "enter")
        await until(pilot, lambda: place_of(screen) == ("train", cut), "the row at its place")
        line = next(line for line in text_of(app).splitlines() if row.place in line)
        assert f"cut  no end token  {row.tokens} tokens, {row.trained} trained" in line


async def test_a_text_is_searched_over_all_rows_and_both_sides(make_app: Make, data: DataFound) -> None:
    app, preview = make_app(None, RecordedActions(found=data)), data.preview
    hits = [i for i in range(preview.rows("train")) if "house 1" in preview.row("train", i).text]
    only_val = next(row for i in range(8) if "house" in (row := preview.row("val", i)).text)
    number = only_val.text.partition("house ")[2].partition(",")[0]
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_data(pilot)
        await pilot.press("slash", *"HOUSE 1", "enter")
        await until(pilot, lambda: place_of(screen)[1] == hits[0], "the first hit")
        assert "/HOUSE 1" in text_of(app)
        for hit in [*hits[1:], hits[0]]:
            await pilot.press("n")
            await until(pilot, lambda hit=hit: place_of(screen)[1] == hit, "the next hit")  # type: ignore[misc]
        await pilot.press("N")
        await until(pilot, lambda: place_of(screen)[1] == hits[-1], "the hit before")
        await pilot.press("slash", "ctrl+u", *f"house {number},", "enter")
        await until(pilot, lambda: place_of(screen) == ("val", only_val.index), "the hit on the other side")
        assert "no training row holds it" in text_of(app)
        await pilot.press("slash", "ctrl+u", *"no such [words]", "enter")
        await until(pilot, lambda: "no row holds no such [words]" in text_of(app), "the word about it")
        assert place_of(screen) == ("val", only_val.index)
        await pilot.press("slash", "ctrl+u", *"house", "escape")
        assert not screen.query(Input)
        assert "/no such [words]" in text_of(app), "the search stays"
        await pilot.press("escape")
        assert isinstance(app.screen, DataScreen)
        assert "/no such [words]" not in text_of(app)
        await pilot.press("escape")
        assert isinstance(app.screen, PresetsPlace)


async def test_a_hit_far_down_is_scrolled_to(make_app: Make, tmp_path: Path) -> None:
    text = "line\n" * 60 + "the needle\n" + "line\n" * 20
    long = found(tmp_path, [{"text": text}], "template: text, val_size: 0")
    app = make_app(None, RecordedActions(found=long))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_data(pilot)
        assert "needle" not in text_of(app)
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: "the needle" in text_of(app), "the line with the hit")
        await until(pilot, lambda: "this row holds it" in text_of(app), "the word about it")
        await pilot.press("n")
        await until(pilot, lambda: "no other row holds it" in text_of(app), "the word about the only hit")


async def test_a_search_that_takes_long_stops_when_it_is_left(make_app: Make, data: DataFound) -> None:
    stopped = threading.Event()

    class Slow(type(data.preview)):  # type: ignore[misc]
        def find(self, side: Any, text: str, start: int, *, backwards: bool = False, stop: Any = None) -> None:
            while not stop():
                stopped.wait(0.01)
            stopped.set()

    slow = object.__new__(Slow)
    slow.__dict__ = data.preview.__dict__
    app = make_app(None, RecordedActions(found=DataFound(data.counted, slow)))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_data(pilot)
        await pilot.press("slash", *"x", "enter")
        await until(pilot, lambda: "searching x" in text_of(app), "the search")
        await pilot.press("]")
        assert "row 2/" in text_of(app), "rows can be looked at meanwhile"
        await pilot.press("escape")
        await until(pilot, stopped.is_set, "the end of the search")
        assert "searching" not in text_of(app)


async def test_a_side_without_rows_is_said_to_be_none(make_app: Make, train_only: DataFound) -> None:
    app = make_app(None, RecordedActions(found=train_only))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_data(pilot)
        assert "t train/val" not in text_of(app)
        await pilot.press("t")
        assert "there are no validation rows" in text_of(app)
        assert place_of(screen) == ("train", 0)


# --- the three kinds of text told apart


def styles_of(data: DataFound, wanted: str = "", width: int = 200) -> list[tuple[str, str]]:
    preview = data.preview
    at = preview.find("train", "Say [red]it[/].", 0)
    side: Any = "train" if at is not None else "val"
    index = at if at is not None else preview.find("val", "Say [red]it[/].", 0)
    assert index is not None
    return [piece for line in row_lines(preview.row(side, index), wanted, width) for piece in line if piece[0]]


def test_trained_masked_and_special_differ_by_more_than_colour(data: DataFound) -> None:
    pieces = styles_of(data)
    masked = "".join(text for text, style in pieces if style == "masked")
    trained = "".join(text for text, style in pieces if style == "trained")
    assert "### Response:⏎" in masked
    assert "Say [red]it[/]." in masked
    assert trained == HOSTILE_ANSWER.replace("\x1b", "\\x1b").replace("\u2028", "\\u2028").replace("\u202e", "\\u202e")
    assert [text for text, style in pieces if style.startswith("special")] == ["</s>"]
    for palette in (Palette(colour=True), Palette(colour=False)):
        assert palette["trained"].underline
        assert not palette["masked"].underline
        assert palette["special"].reverse or palette["special"].bgcolor
        assert palette["special"] != palette["masked"] != palette["trained"]


@pytest.mark.parametrize("why", ["no colour", "no UTF-8"])
def test_without_colour_or_utf8_marks_stand_in_the_text(
    data: DataFound, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "no colour":
        monkeypatch.setattr(Drawing, "palette", Palette(colour=False))
    else:
        monkeypatch.setattr(Drawing, "glyphs", ASCII)
    text = "".join(text for text, _ in styles_of(data))
    assert text.index("Say [red]") < text.index("Response:") < text.index("{+\\x1b[31mred")
    assert text.endswith("<<</s>>>+}")
    if why == "no UTF-8":
        assert text.isascii()
        assert "Response:\\n" in text


def test_a_searched_text_is_brought_out_across_kinds_and_nothing_is_lost(data: DataFound) -> None:
    plain, hits = styles_of(data), styles_of(data, "response:\n\x1b[31MRED")
    assert "".join(t for t, _ in hits) == "".join(t for t, _ in plain)
    found_masked = [text for text, style in hits if style == "hit_masked"]
    assert [text for text in found_masked if text != "⏎"] == ["Response:"]
    assert "".join(text for text, style in hits if style == "hit_trained") == "\\x1b[31mred"


@pytest.mark.parametrize("width", [2, 3, 7, 28, 78])
def test_wrapped_lines_keep_to_the_width_and_all_letters(data: DataFound, width: int) -> None:
    preview = data.preview
    for index in range(preview.rows("train")):
        row = preview.row("train", index)
        lines = row_lines(row, "", width)
        assert all(cell_len("".join(text for text, _ in line)) <= width for line in lines)
        shown = "".join(text for line in lines for text, _ in line)
        whole = "".join(text for line in row_lines(row, "", 10_000) for text, _ in line)
        assert shown.replace(" ", "") == whole.replace(" ", "")


# --- sizes, hostile text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_pane_can_be_read_at_every_size(make_app: Make, data: DataFound, size: tuple[int, int]) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=size) as pilot:
        await open_data(pilot, "row 1/")
        seen = await shown_all(pilot)
        for _ in range(2):
            await pilot.press("tab")
            seen += await shown_all(pilot)
        await pilot.press("tab")
        assert app.screen.focused is app.screen.query_one(RowPane)
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await until(pilot, lambda: "row 1/" in text_of(app), f"the row at {width} × {height}")
    flat = " ".join(seen.split())
    for wanted in ("Response:", "training", "validation", "33 in 3", "group_by_length", "max_length 400", "rows.jsonl"):
        assert wanted in flat, wanted


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_hostile_rows_are_shown_verbatim(make_app: Make, data: DataFound, size: tuple[int, int]) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=size) as pilot:
        screen = await open_data(pilot)
        await pilot.press("slash", *"@click", "enter")
        await until(pilot, lambda: "@click" in (screen.row() or data.preview.row("val", 0)).text, "the hostile row")
        seen = await shown_all(pilot)
        await pilot.press("y")
        await until(pilot, lambda: "copied: Below is" in text_of(app), "the copy")
        await pilot.press("question_mark", "escape", "colon", "escape")
        seen += text_of(app)
        assert app.is_running
    assert not CONTROL.search(seen)
    assert "\\x1b[31mred" in seen
    if size[0] >= 80:
        assert "[@click=app.quit]q[/]" in seen
        assert "{+no mark+} <<none>>" in seen


async def test_hostile_notes_and_sources(make_app: Make, data: DataFound) -> None:
    evil = "[red]x[/] \x1b]0;t\x07 \u202e"
    app = make_app(None, RecordedActions(found=DataFound(data.counted, data.preview, (evil,))))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_data(pilot)
        screen = text_of(app)
        assert "[red]x[/] \\x1b]0;t" in screen
        assert not CONTROL.search(screen)


# --- preparing


class Waiting(FixedForecast):
    """Starts a real child that never ends, and waits for it as the real action does."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.ended = threading.Event()

    def data(
        self, loaded: LoadedPreset, on_progress: Progress, begun: Callable[[subprocess.Popen[str]], None]
    ) -> DataFound:
        on_progress("tokenizing", 1200, 15015)
        self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], text=True)
        begun(self.child)
        self.child.wait()
        self.ended.set()
        raise DataError("the child died")


@pytest.mark.parametrize("way", [("escape",), ("1",), ("q",)], ids=lambda way: way[0])
async def test_leaving_ends_the_child_that_prepares(make_app: Make, way: tuple[str, ...]) -> None:
    actions = Waiting()
    app = make_app(None, actions)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_data(pilot, "tokenizing 1,200 of 15,015")
        assert actions.child is not None
        assert actions.child.poll() is None
        for key in ("]", "n", "slash", "t", "y", "plus", "plus", "tab"):
            await pilot.press(key)
        await pilot.press(*way)
        if way != ("q",):
            await until(pilot, lambda: isinstance(app.screen, PresetsPlace), "the presets")
            await until(pilot, actions.ended.is_set, "the end of the child")
            assert "the child died" not in text_of(app)
    assert actions.ended.wait(10)


async def test_what_is_wrong_with_the_data_is_told_with_its_cure(make_app: Make) -> None:
    actions = RecordedActions()
    app = make_app(None, actions)
    async with app.run_test(size=(30, 10)) as pilot:
        await open_data(pilot, "/data/[x]/rows.jsonl")
        seen = " ".join((await shown_all(pilot)).split())
        assert "/data/[x]/rows.jsonl" in seen
        assert "rows2.jsonl" in seen
        await pilot.press("escape")
        assert isinstance(app.screen, PresetsPlace)
    assert actions.done == ["data island"]


async def test_a_preset_that_cannot_be_read_shows_its_problems(make_app: Make) -> None:
    app = make_app(None, RecordedActions())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "broken" in text_of(app), "the list")
        app.screen.query_one("#presets", ListPane).put_cursor(str(RUNS.parent / "presets" / "broken.yaml"))
        await pilot.press("i")
        await until(pilot, lambda: "broken has" in text_of(app), "its problems")


async def test_the_run_is_started_from_here(make_app: Make, data: DataFound) -> None:
    app = make_app(None, RecordedActions(found=data))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_data(pilot)
        await pilot.press("r")
        await until(pilot, lambda: "Start island" in text_of(app), "the question")
        await pilot.press("escape")
        assert isinstance(app.screen, DataScreen)


async def test_the_bundled_demo_is_prepared_for_real(llmtui_home: Path, strict: None) -> None:
    app = LlmtuiApp(llmtui_home)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "demo" in text_of(app), "the library")
        await pilot.press("i")
        await until(pilot, lambda: "row 1/2,466" in text_of(app), "its rows", 60)
        assert "dolly-demo.jsonl:" in text_of(app)
