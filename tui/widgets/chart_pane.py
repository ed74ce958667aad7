"""The loss chart of the Run place."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from textual.strip import Strip

from llmtui.core import words
from llmtui.core.runs.label_words import share
from llmtui.tui.charts.drawing import Cell, ChartData, ChartView, Picture, draw
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, strip_of

_FOLLOW_STEPS: Final = 200


class ChartPane(Pane):
    """Draws `ChartData`; the view (log, window, crosshair) is its own."""

    SCOPES = ()

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.data = ChartData()
        self.view = ChartView()
        self.following = False
        self.smoothing = 0.9
        self.reading_on = False
        self.waiting = "no step yet"
        self._picture: Picture | None = None
        self._drawn: tuple[object, ...] = ()
        self._rows: list[Strip] = []

    def show(self, data: ChartData, *, waiting: str, read_all: bool) -> None:
        """New data; what is drawn changes only when the data did."""
        self.data, self.waiting, self.reading_on = data, waiting, not read_all
        series = data.series
        seen = (series.raw.values, series.length, series.smoothing) if series is not None else None
        if self.is_news(seen, data.evals, data.bad, data.total_steps, data.final, waiting, read_all):
            self.repaint()

    # --- the view

    def toggle_log(self) -> None:
        """Logarithmic loss axis, or linear."""
        self.view = replace(self.view, log=not self.view.log)
        self.repaint()

    def toggle_follow(self) -> None:
        """The newest steps only, or the whole curve."""
        self.following = not self.following
        self.repaint()

    def reset(self) -> None:
        """Everything as at first."""
        self.view, self.following = ChartView(), False
        self.repaint()

    def drop_crosshair(self) -> None:
        """No crosshair any more."""
        self.view = replace(self.view, crosshair=None)
        self.repaint()

    def move_crosshair(self, by: int) -> None:
        """To the left or right by so many columns that can be told apart; it appears at the newest step."""
        series = self.data.series
        if series is None or not series.length:
            return
        view = self._window()
        first = bisect_left(series.step, view.steps[0], 0, series.length) if view.steps else 0
        at = self.view.crosshair
        if at is None:
            at = series.length - 1
        else:
            dots = max(1, (self._picture.columns if self._picture else 1) * (2 if Drawing.glyphs.braille else 1))
            stride = max(1, (series.length - first) // dots)
            at += by * stride
        self.view = replace(self.view, crosshair=max(first, min(series.length - 1, at)))
        self.repaint()

    def crosshair_values(self) -> str:
        """The values at the crosshair exactly as the run wrote them; empty without a crosshair."""
        series, at = self.data.series, self.view.crosshair
        if series is None or at is None or at >= series.length:
            return ""
        curve = series.curve
        loss = curve.loss[at]
        step = curve.step[at]
        bad = dict(self.data.bad).get(step, "nan")
        parts = [f"step {step}", f"loss {loss!r}" if loss == loss else f"loss {bad}"]
        parts.append(f"lr {curve.learning_rate[at]!r}")
        norm = curve.grad_norm[at]
        if norm == norm:
            parts.append(f"grad norm {norm!r}")
        return "  ".join(parts)

    def _window(self) -> ChartView:
        series = self.data.series
        if self.following and series is not None and series.length:
            last = series.step[series.length - 1]
            return replace(self.view, steps=(last - _FOLLOW_STEPS + 1, last))
        return self.view

    # --- drawing

    def title(self) -> tuple[Line, Line]:
        left: list[Piece] = [("Loss", "title")]
        dot = f" {Drawing.glyphs.dot} "
        smoothing = self.smoothing
        left.append(
            (dot + (f"smoothed {smoothing:g}" if smoothing else "not smoothed"), "smooth" if smoothing else "faint")
        )
        if self.view.log:
            left.append((dot + "log", "title"))
        if self.following:
            left.append((dot + f"last {_FOLLOW_STEPS} steps", "title"))
        if self.data.evals:
            left.append((dot, "faint"))
            left.append((f"{Drawing.glyphs.eval_point} eval", "eval"))
        if values := self.crosshair_values():
            return left[:1], [(values, "crosshair")]
        return left, self._values()

    def _values(self) -> list[Piece]:
        series = self.data.series
        if series is None or not series.length:
            return []
        last = series.raw.values[series.length - 1]
        right: list[Piece] = []
        if self.data.bad:
            step, kind = self.data.bad[-1]
            more = f", {len(self.data.bad)} in all" if len(self.data.bad) > 1 else ""
            name = "NaN" if kind == "nan" else kind
            right.append((f"{Drawing.glyphs.bad_point} {name} at step {step:,}{more}", "bad"))
        if self._picture is not None and self._picture.hidden:
            right.append(("zero or less not shown", "warn"))
        right.append((f"last {words.number(last)}", "text"))
        low, _ = series.raw.extremes(0, series.length)
        if low < float("inf"):
            right.append((f"min {words.number(low)}", "text"))
        evals = [loss for _, loss in self.data.evals if loss is not None]
        if evals:
            right.append((f"eval {words.number(evals[-1])}", "eval"))
        if self.data.exact_match is not None:
            right.append((f"exact match {share(self.data.exact_match)}", "eval"))
        spaced: list[Piece] = []
        for piece in right:
            spaced += [("  ", "text"), piece] if spaced else [piece]
        return spaced

    def content(self, width: int, height: int) -> list[Strip]:
        series = self.data.series
        if series is None or not series.length:
            text = "reading the history …" if self.reading_on else self.waiting
            blank = [strip_of((), width)] * max(0, (height - 1) // 2)
            return [*blank, strip_of(((" " * max(0, (width - cell_len(text)) // 2) + text, "faint"),), width)]
        view = self._window()
        data = self.data
        drawn: tuple[object, ...] = (series.raw.values, series.length, series.smooth is None, series.smoothing)
        drawn += (data.evals, data.bad, data.total_steps, data.final, view, width, height)
        if drawn != self._drawn or self._picture is None:
            self._picture, self._drawn = draw(self.data, view, width, height, Drawing.glyphs), drawn
            self._rows = [strip_of(_runs(row), width) for row in self._picture.rows]
        return list(self._rows)


def _runs(row: list[Cell]) -> list[Piece]:
    """Neighbouring cells of one style as one piece."""
    pieces: list[Piece] = []
    text, style = "", ""
    for character, name in row:
        if name != style and character != " ":
            if text:
                pieces.append((text, style or "text"))
            text, style = "", name
        text += character
    if text:
        pieces.append((text, style or "text"))
    return pieces
