"""Axes: a range that starts and ends at round numbers, its ticks, and where a value lies on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_LARGEST: Final = 1e300  # differences beyond would overflow


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high` (of the logarithm when `log`), with `ticks` as (value, label)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def position(self, value: float) -> float | None:
        """0 at the low end, 1 at the high end; None for what the axis cannot show (NaN, ≤ 0 on a log axis)."""
        scaled = self.scale(value)
        return None if scaled is None else (scaled - self.low) / (self.high - self.low)

    def scale(self, value: float) -> float | None:
        """The value as the axis measures it."""
        return to_log(value) if self.log else to_linear(value)


def to_linear(value: float) -> float | None:
    """The value, held within what can be subtracted; None when it is not finite."""
    return min(_LARGEST, max(-_LARGEST, value)) if math.isfinite(value) else None


def to_log(value: float) -> float | None:
    """log10; None when it is not finite or not above zero."""
    return math.log10(value) if math.isfinite(value) and value > 0 else None


def value_axis(low: float, high: float, rows: int, *, log: bool = False) -> Axis:
    """A y axis around two values (inf, -inf when there are none) for about `rows` lines."""
    if log:
        return _log_axis(to_log(low), to_log(high), rows)
    bottom, top = to_linear(low), to_linear(high)
    if bottom is None or top is None:
        bottom, top = 0.0, 1.0
    if top - bottom <= 1e-9 * max(abs(top), abs(bottom), 1e-300):
        room = abs(top) * 0.1 or 0.5
        bottom, top = bottom - room, top + room
    step = nice_step((top - bottom) / max(1, min(5, (rows - 1) // 2)))
    low_tick, high_tick = math.floor(bottom / step + 1e-9), math.ceil(top / step - 1e-9)
    places = [tick * step for tick in range(low_tick, max(high_tick, low_tick + 1) + 1)]
    return Axis(places[0], places[-1], tuple((place, _label(place, step)) for place in places))


def _label(place: float, step: float) -> str:
    if place != 0 and (abs(place) >= 1e5 or step < 1e-4):
        return f"{place:.1e}" if step / abs(place) > 0.01 else f"{place:.3e}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if round(step, decimals) != step and decimals < 6:
        decimals += 1  # steps of 0.25
    return f"{place:.{min(decimals, 6)}f}"


def _log_axis(bottom: float | None, top: float | None, rows: int) -> Axis:
    """Ticks at 1, 2 and 5 of each decade while there is room, else at powers of ten."""
    if bottom is None or top is None:
        bottom, top = -1.0, 0.0
    first, last = math.floor(bottom), math.ceil(top)
    if last - first <= 2:
        marks = [exponent + math.log10(m) for exponent in range(first, last + 1) for m in (1, 2, 5)]
    else:
        stride = -(-(last - first) // max(1, min(6, rows // 2)))
        marks = [float(exponent) for exponent in range(first, last + stride + 1, stride)]
    at = max(i for i, mark in enumerate(marks) if mark <= bottom + 1e-9)
    to = next((i for i, mark in enumerate(marks) if mark >= top - 1e-9), len(marks) - 1)
    if to <= at:  # one value on a mark: a mark below it or above it
        at, to = (at - 1, at) if at > 0 else (at, at + 1)
    places = marks[at : to + 1]
    return Axis(places[0], places[-1], tuple((p, _log_label(p)) for p in places), log=True)


def _log_label(place: float) -> str:
    """10 to the power of a place, which a float may not hold."""
    if -4 <= place <= 5:
        return f"{10**place:.{max(0, -math.floor(place + 1e-9))}f}"
    exponent = math.floor(place + 1e-9)
    return f"{10 ** (place - exponent):.0f}e{exponent:+d}"


def step_axis(first: int, last: int, columns: int, limit: int | None) -> Axis:
    """An x axis of whole steps. Its end is rounded up, so that it moves seldom; never past `limit`."""
    span = max(1, last - first)
    step = max(1, round(nice_step(span / max(1, min(8, columns // 12)))))
    end = first + -(-span // step) * step
    if limit is not None:
        end = max(last, min(end, limit))
    end = max(end, first + 1)
    begin = -(-first // step) * step
    ticks = tuple((float(x), f"{x:,}") for x in range(begin, end + 1, step))
    return Axis(float(first), float(end), ticks)


def nice_step(rough: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `rough`."""
    if not rough > 0 or not math.isfinite(rough):
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0):
        if factor * power >= rough * (1 - 1e-9):
            return factor * power
    return 10.0 * power
