"""The loss chart as rows of cells: raw faint, smoothed over it, evaluations, NaN marks, axes, crosshair."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from llmtui.tui.charts.axis import Axis, step_axis, value_axis
from llmtui.tui.charts.canvas import Canvas
from llmtui.tui.charts.series import CurveSeries, Series
from llmtui.tui.glyphs import Glyphs

Cell = tuple[str, str]
"""One character and the name of its style."""


@dataclass(frozen=True, slots=True)
class ChartData:
    """What is drawn. `evals` and `bad` by step; a None loss of an evaluation was not finite."""

    series: CurveSeries | None = None
    evals: tuple[tuple[int, float | None], ...] = ()
    exact_match: float | None = None
    bad: tuple[tuple[int, str], ...] = ()
    total_steps: int | None = None
    final: bool = False


@dataclass(frozen=True, slots=True)
class ChartView:
    """How it is looked at. `steps` is the window of steps, None = all; `crosshair` an index into the curve."""

    log: bool = False
    steps: tuple[int, int] | None = None
    crosshair: int | None = None


@dataclass(slots=True)
class Picture:
    """Rows of cells, all of the asked width, and where things lie in it."""

    rows: list[list[Cell]]
    first: int = 0
    last: int = 0
    left: int = 0
    columns: int = 0
    hidden: bool = False
    extremes: tuple[float, float] = field(default=(math.inf, -math.inf))


def draw(data: ChartData, view: ChartView, width: int, height: int, glyphs: Glyphs) -> Picture:
    """Draw into `width` × `height` cells; any size, any values, nothing raises."""
    rows: list[list[Cell]] = [[(" ", "text")] * width for _ in range(height)]
    series = data.series
    if series is None or not series.length or width < 12 or height < 3:
        return Picture(rows)
    first, last = _visible(series, view)
    low, high, hidden = _extremes(data, series, first, last, view.log)
    plot_height = height - 1
    y_axis = value_axis(low, high, plot_height, log=view.log)
    label_width = min(9, max(len(label) for _, label in y_axis.ticks))
    left = label_width + 1
    columns = width - left
    limit = data.total_steps if not data.final else series.step[last - 1]
    x_axis = step_axis(series.step[first], series.step[last - 1], columns, limit)
    plot = _Plot(rows, left, columns, plot_height, x_axis, y_axis, glyphs)
    plot.axes(label_width)
    plot.curve(series.raw, series, first, last, "raw")
    if series.smooth is not None:
        plot.curve(series.smooth, series, first, last, "smooth")
    plot.marks(data, series.step[first], series.step[last - 1])
    if view.crosshair is not None and first <= view.crosshair < last:
        plot.crosshair(series.step[view.crosshair])
    return Picture(rows, first, last, left, columns, hidden, (low, high))


def _visible(series: CurveSeries, view: ChartView) -> tuple[int, int]:
    """The indexes `[first, last)` of the window; never empty."""
    if view.steps is None:
        return 0, series.length
    first = bisect_left(series.step, view.steps[0], 0, series.length)
    last = bisect_left(series.step, view.steps[1] + 1, 0, series.length)
    if first >= last:
        return max(0, series.length - 1), series.length
    return first, last


def _extremes(data: ChartData, series: CurveSeries, first: int, last: int, log: bool) -> tuple[float, float, bool]:
    """Lowest and highest loss of the window, and whether a log axis hides some."""
    low, high = series.raw.extremes(first, last)
    begin, end = series.step[first], series.step[last - 1]
    evals = [loss for step, loss in data.evals if begin <= step <= end and loss is not None and math.isfinite(loss)]
    low, high = min([low, *evals]), max([high, *evals])
    if log and low <= 0:
        above = [value for value in series.raw.values[first:last] if 0 < value < math.inf]
        above += [loss for loss in evals if loss > 0]
        return min(above, default=math.inf), max(above, default=-math.inf), True
    return low, high, False


class _Plot:
    """The drawing area while a picture is made."""

    def __init__(
        self, rows: list[list[Cell]], left: int, columns: int, height: int, x: Axis, y: Axis, glyphs: Glyphs
    ) -> None:
        self.rows, self.left, self.columns, self.height = rows, left, columns, height
        self.x, self.y, self.glyphs = x, y, glyphs

    def axes(self, label_width: int) -> None:
        """Labels and ticks on both sides."""
        for row in range(self.height):
            self.rows[row][self.left - 1] = (self.glyphs.axis_left, "rule")
        taken: set[int] = set()
        for value, label in sorted(self.y.ticks, key=lambda tick: tick[0] not in (self.y.low, self.y.high)):
            row = round((1 - (value - self.y.low) / (self.y.high - self.y.low)) * (self.height - 1))
            if row in taken or not 0 <= row < self.height:
                continue
            taken.add(row)
            self._write(row, label_width - len(label[:label_width]), label[:label_width], "faint")
            self.rows[row][self.left - 1] = (self.glyphs.axis_tick, "rule")
        free = 0
        for value, label in self.x.ticks:
            column = self.left + round(self._across(value) * (self.columns - 1))
            begin = min(max(free, column - len(label) // 2), len(self.rows[0]) - len(label))
            if begin < free or begin < 0:
                continue
            self._write(self.height, begin, label, "faint")
            free = begin + len(label) + 2

    def curve(self, values: Series, series: CurveSeries, first: int, last: int, style: str) -> None:
        """One series. Every column holds the lowest and the highest of its steps, so that no spike is lost."""
        canvas = Canvas(self.columns, self.height, braille=self.glyphs.braille)
        before: tuple[int, int] | None = None
        for x, begin, low, high, end in self._columns(values, series, first, last, canvas.dots_wide):
            heights = [self._dots_down(value, canvas.dots_high) for value in (begin, low, high, end)]
            if heights[1] is None and heights[2] is None:
                before = None
                continue
            top = heights[2] if heights[2] is not None else heights[1]
            bottom = heights[1] if heights[1] is not None else canvas.dots_high - 1
            assert top is not None
            start = heights[0] if heights[0] is not None else bottom
            if before is not None:
                canvas.line(before[0], before[1], x, start)
            canvas.vertical(x, top, bottom)
            before = (x, heights[3] if heights[3] is not None else bottom)
        for row in range(self.height):
            cells = self.rows[row]
            for column in range(self.columns):
                if character := canvas.character(column, row):
                    if style == "smooth" and not self.glyphs.braille:
                        character = "*"
                    cells[self.left + column] = (character, style)

    def _columns(
        self, values: Series, series: CurveSeries, first: int, last: int, dots: int
    ) -> Iterator[tuple[int, float, float, float, float]]:
        """(dot column, first, lowest, highest, last value) of each point, or of each dot column's steps."""
        step, data = series.step, values.values
        if last - first <= 2 * dots:
            for index in range(first, last):
                value = data[index]
                yield round(self._across(step[index]) * (dots - 1)), value, value, value, value
            return
        begin = first
        width = (self.x.high - self.x.low) / (dots - 1)
        for dot in range(dots):
            border = self.x.low + (dot + 0.5) * width
            end = bisect_left(step, math.ceil(border), begin, last) if dot < dots - 1 else last
            if end > begin:
                low, high = values.extremes(begin, end)
                yield dot, data[begin], low, high, data[end - 1]
            begin = end

    def marks(self, data: ChartData, begin: int, end: int) -> None:
        """Evaluations where they lie, and a mark at the foot of every step whose loss was not finite."""
        for step, loss in data.evals:
            if not begin <= step <= end:
                continue
            down = None if loss is None else self._dots_down(loss, self.height)
            if down is None:
                self._mark(step, self.height - 1, self.glyphs.bad_point, "bad")
            else:
                self._mark(step, down, self.glyphs.eval_point, "eval")
        for step, _ in data.bad:
            if begin <= step <= end:
                self._mark(step, self.height - 1, self.glyphs.bad_point, "bad")

    def crosshair(self, step: int) -> None:
        """A line through all heights at this step; it stands behind what is drawn there."""
        column = self.left + round(self._across(step) * (self.columns - 1))
        for row in range(self.height):
            character, style = self.rows[row][column]
            self.rows[row][column] = (self.glyphs.crosshair if character == " " else character, "crosshair")
            if style == "bad":
                self.rows[row][column] = (character, style)

    def _mark(self, step: int, row: int, glyph: str, style: str) -> None:
        self.rows[row][self.left + round(self._across(step) * (self.columns - 1))] = (glyph, style)

    def _across(self, step: float) -> float:
        span = self.x.high - self.x.low  # 0 when steps are too large to differ as floats
        return min(1.0, max(0.0, (step - self.x.low) / span)) if span > 0 else 0.0

    def _dots_down(self, value: float, dots: int) -> int | None:
        place = self.y.position(value)
        return None if place is None else round((1 - min(1.0, max(0.0, place))) * (dots - 1))

    def _write(self, row: int, column: int, text: str, style: str) -> None:
        for offset, character in enumerate(text):
            if 0 <= column + offset < len(self.rows[row]):
                self.rows[row][column + offset] = (character, style)
