"""A growing curve with the extremes of its blocks, so that any span of it is summed up without a walk over it.

Fed by one thread, read by another: the arrays only grow, and a `Series` remembers how far it may read. No
buffer of them is ever exported (a memoryview would forbid them to grow).
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Final

from llmtui.core.runs.state import Curve

BLOCK: Final = 64
SMOOTHINGS: Final = (0.0, 0.6, 0.9, 0.99)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Values by index, with low and high of each whole block of `BLOCK`; inf and -inf where none is finite."""

    length: int
    values: array[float]
    low: array[float]
    high: array[float]

    def extremes(self, begin: int, end: int) -> tuple[float, float]:
        """Lowest and highest finite value of `[begin, end)`; (inf, -inf) when there is none."""
        low, high = math.inf, -math.inf
        first_block, last_block = -(-begin // BLOCK), end // BLOCK
        if first_block < last_block and last_block <= len(self.low):
            low = min(self.low[first_block:last_block])
            high = max(self.high[first_block:last_block])
            edges = ((begin, first_block * BLOCK), (last_block * BLOCK, end))
        else:
            edges = ((begin, end), (end, end))
        for a, b in edges:
            finite = _finite(self.values[a:b])
            if finite:
                low, high = min(low, *finite), max(high, *finite)
        return low, high


class GrowingSeries:
    """The writer's side of a `Series`."""

    def __init__(self, values: array[float] | None = None) -> None:
        self.values: array[float] = array("d") if values is None else values
        self._low: array[float] = array("d")
        self._high: array[float] = array("d")

    def index(self, length: int) -> Series:
        """Sum up the blocks that have become whole, and give what can be read now."""
        while (len(self._low) + 1) * BLOCK <= length:
            begin = len(self._low) * BLOCK
            finite = _finite(self.values[begin : begin + BLOCK])
            # high first: a reader that sees a low also finds its high
            self._high.append(max(finite, default=-math.inf))
            self._low.append(min(finite, default=math.inf))
        return Series(length, self.values, self._low, self._high)


@dataclass(frozen=True, slots=True, eq=False)
class CurveSeries:
    """What the chart draws: the curve's steps and losses, and the smoothed losses."""

    length: int
    step: array[int]
    raw: Series
    smooth: Series | None
    smoothing: float
    curve: Curve


class CurveIndex:
    """Follows a run's curve and keeps its `CurveSeries` up to date."""

    def __init__(self) -> None:
        self.smoothing: float = SMOOTHINGS[2]
        self._raw = GrowingSeries()
        self._smooth = GrowingSeries()
        self._smoothed_with: float = -1.0
        self._average = 0.0
        self._weight = 0.0

    def update(self, curve: Curve) -> CurveSeries:
        """Take what is new in the curve; begin anew when a resume has cut it."""
        if self._raw.values is not curve.loss:
            self._raw = GrowingSeries(curve.loss)
            self._smoothed_with = -1.0
        smoothing, length = self.smoothing, curve.length
        if smoothing != self._smoothed_with:
            self._smooth, self._average, self._weight = GrowingSeries(), 0.0, 0.0
            self._smoothed_with = smoothing
        smooth = None
        if smoothing:
            self._extend_average(curve.loss, length, smoothing)
            smooth = self._smooth.index(length)
        return CurveSeries(length, curve.step, self._raw.index(length), smooth, smoothing, curve)

    def _extend_average(self, loss: array[float], length: int, smoothing: float) -> None:
        """Exponential moving average with the start corrected, as TensorBoard draws it; NaN leaves it as it is."""
        out = self._smooth.values.append
        average, weight = self._average, self._weight
        keep, take = smoothing, 1 - smoothing
        for value in loss[len(self._smooth.values) : length]:
            if value - value != 0:  # not finite
                out(math.nan)
            elif weight > 1 - 1e-12:
                average = average * keep + value * take
                out(average)
            else:
                average = average * keep + value * take
                weight = weight * keep + take
                out(average / weight)
        self._average, self._weight = average, weight


def _finite(values: array[float]) -> array[float] | list[float]:
    total = sum(values)
    if total - total == 0:  # one look for all: NaN and inf would have stayed
        return values
    return [value for value in values if value - value == 0]
