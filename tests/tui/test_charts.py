"""The chart hides nothing and never raises: spikes, NaN, one point, none, absurd sizes."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.runs.state import Curve
from llmtui.tui.charts.axis import step_axis, value_axis
from llmtui.tui.charts.drawing import ChartData, ChartView, Picture, draw
from llmtui.tui.charts.series import BLOCK, CurveIndex, GrowingSeries
from llmtui.tui.glyphs import ASCII, UNICODE, Glyphs

F5 = [[1, 2, math.inf], [math.nan] * 3, [], [2.0], [2.0] * 5, [1, 0], [1e30, 1e-30], [1e308, -1e308], [0.0] * 4]


def curve_of(losses: list[float], first_step: int = 1) -> Curve:
    """A curve with these losses at following steps."""
    count = len(losses)
    zeros = array("d", bytes(8 * count))
    steps = array("q", range(first_step, first_step + count))
    return Curve(count, steps, zeros, array("d", losses), zeros, zeros, array("q", bytes(8 * count)), zeros, zeros)


def picture(losses: list[float], *, width: int = 80, height: int = 12, glyphs: Glyphs = UNICODE, smoothing: float = 0.9,
            view: ChartView | None = None, **data: object) -> Picture:  # fmt: skip
    index = CurveIndex()
    index.smoothing = smoothing
    series = index.update(curve_of(losses))
    return draw(ChartData(series=series, **data), view or ChartView(), width, height, glyphs)  # type: ignore[arg-type]


def text(drawn: Picture) -> str:
    return "\n".join("".join(character for character, _ in row) for row in drawn.rows)


@pytest.mark.parametrize("losses", F5, ids=lambda losses: str(losses)[:24])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["braille", "ascii"])
def test_the_shapes_that_broke_other_charts(losses: list[float], log: bool, glyphs: Glyphs) -> None:
    drawn = picture(losses, view=ChartView(log=log), glyphs=glyphs)
    assert [len(row) for row in drawn.rows] == [80] * 12


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=300),
    st.integers(0, 120), st.integers(0, 30), st.booleans(), st.integers(0, 299),
)  # fmt: skip
def test_any_numbers_at_any_size(losses: list[float], width: int, height: int, log: bool, at: int) -> None:
    drawn = picture(losses, width=width, height=height, view=ChartView(log=log, crosshair=at))
    assert [len(row) for row in drawn.rows] == [width] * height


@pytest.mark.parametrize("where", [0, 1, 61_234, 99_998, 99_999])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_single_spike_in_a_hundred_thousand_steps_is_drawn_to_its_height(where: int, width: int) -> None:
    chance = random.Random(1)
    losses = [1.0 + chance.gauss(0, 0.05) for _ in range(100_000)]
    losses[where] = 9.0
    drawn = picture(losses, width=width, smoothing=0.0)
    rows = [y for y, row in enumerate(drawn.rows[:-1]) if any(style == "raw" for _, style in row)]
    assert drawn.extremes[1] == 9.0
    assert min(rows) <= 1  # the axis ends at 10: the spike is in one of the two upper rows


def test_a_dip_is_drawn_as_well_as_a_spike() -> None:
    losses = [5.0] * 50_000
    losses[20_000] = 0.1
    drawn = picture(losses, smoothing=0.0)
    assert drawn.extremes[0] == 0.1
    assert any(style == "raw" for _, style in drawn.rows[-2])


def test_a_nan_is_marked_and_leaves_a_gap() -> None:
    drawn = picture([3.0, 2.0, math.nan, 1.0, 1.0], smoothing=0.0, bad=((3, "nan"),))
    foot = drawn.rows[-2]
    assert foot[drawn.left + round(0.5 * (drawn.columns - 1))] == (UNICODE.bad_point, "bad")
    middle = [row[drawn.left + drawn.columns // 2][1] for row in drawn.rows[:-2]]
    assert "raw" not in middle


def test_an_evaluation_stands_at_its_step_and_loss() -> None:
    drawn = picture([4.0] * 101, smoothing=0.0, evals=((51, 2.0), (101, None)))
    marks = [(y, x) for y, row in enumerate(drawn.rows) for x, (c, _) in enumerate(row) if c == UNICODE.eval_point]
    assert len(marks) == 1
    assert abs(marks[0][1] - (drawn.left + drawn.columns // 2)) <= 1
    assert any(character == UNICODE.bad_point for character, _ in drawn.rows[-2])  # an eval that was not finite


def test_a_log_axis_says_that_it_hides_what_is_not_above_zero() -> None:
    assert picture([1.0, 0.0], view=ChartView(log=True)).hidden
    assert not picture([1.0, 0.5], view=ChartView(log=True)).hidden


def test_ascii_needs_nothing_but_ascii() -> None:
    chance = random.Random(2)
    losses = [3 * math.exp(-step / 200) + 1 + chance.gauss(0, 0.1) for step in range(900)]
    drawn = picture(losses, glyphs=ASCII, bad=((10, "nan"),), evals=((400, 1.5),), view=ChartView(crosshair=300))
    assert text(drawn).isascii()


def test_raw_and_smoothed_differ_by_form_without_colour() -> None:
    chance = random.Random(3)
    drawn = picture([2 + chance.gauss(0, 0.4) for _ in range(400)], glyphs=ASCII)
    smooth = {character for row in drawn.rows for character, style in row if style == "smooth"}
    raw = {character for row in drawn.rows for character, style in row if style == "raw"}
    assert smooth == {"*"} and raw and not raw & smooth


def test_labels_keep_their_place_however_large_the_numbers() -> None:
    for low, high in ((1e30, 1e-30), (1e308, -1e308), (1e5, 1e5 + 1e-3), (123456.7, 123456.8), (0.0, 1e-12)):
        for log in (False, True):
            for _, label in value_axis(min(low, high), max(low, high), 12, log=log).ticks:
                assert len(label) <= 10


def test_the_step_axis_ends_at_a_round_number_and_never_past_the_end_of_the_run() -> None:
    axis = step_axis(1, 1234, 70, 4881)
    assert 1234 <= axis.high <= 1600
    assert all(value % 50 == 0 for value, _ in axis.ticks)
    assert step_axis(1, 4880, 70, 4881).high == 4881
    assert step_axis(5, 5, 70, None).high > 5


def test_extremes_of_any_span_are_those_of_a_walk_over_it() -> None:
    chance = random.Random(4)
    values = array("d", (math.nan if chance.random() < 0.05 else chance.uniform(-5, 5) for _ in range(1000)))
    growing = GrowingSeries(values)
    for length in (10, BLOCK, BLOCK + 1, 700, 1000):
        series = growing.index(length)
        for _ in range(60):
            begin = chance.randrange(length)
            end = chance.randrange(begin, length) + 1
            finite = [value for value in values[begin:end] if not math.isnan(value)]
            wanted = (min(finite, default=math.inf), max(finite, default=-math.inf))
            assert series.extremes(begin, end) == wanted


def test_smoothing_is_the_same_bit_by_bit_as_at_once() -> None:
    chance = random.Random(5)
    losses = [chance.uniform(0, 4) for _ in range(500)]
    losses[100] = math.nan
    whole = CurveIndex().update(curve_of(losses))
    growing, bit_by_bit = curve_of(losses), CurveIndex()
    for length in (1, 3, 99, 101, 102, 400, 500):
        series = bit_by_bit.update(replace(growing, length=length))
    assert whole.smooth is not None and series.smooth is not None
    assert [repr(v) for v in whole.smooth.values] == [repr(v) for v in series.smooth.values]
    first = losses[0]
    assert whole.smooth.values[0] == pytest.approx(first)  # the start is not pulled towards zero
    assert math.isnan(whole.smooth.values[100]) and not math.isnan(whole.smooth.values[101])


def test_a_cut_curve_is_drawn_anew() -> None:
    index = CurveIndex()
    index.update(curve_of([4.0, 3.0, 2.0]))
    series = index.update(curve_of([4.0, 3.5]))
    assert series.length == 2
    assert series.smooth is not None and len(series.smooth.values) == 2
