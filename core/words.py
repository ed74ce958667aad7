"""Numbers as people read them. What is not known is "–"."""

from __future__ import annotations

import math
import time
from typing import Final

UNKNOWN: Final = "–"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count(value: int | None) -> str:
    """An exact count with thousands set apart: `4,881`."""
    return UNKNOWN if value is None else f"{value:,}"


def short_count(value: float | None) -> str:
    """A count in few characters: `17.2k`, `6.9B`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for limit, suffix in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scaled = value / (1e3 if suffix == "k" else limit)
            return f"{scaled:.3g}{suffix}" if abs(scaled) < 1000 else f"{scaled:.0f}{suffix}"
    return f"{value:.0f}"


def number(value: float | None, digits: int = 4) -> str:
    """A loss or a rate in at most `digits` + 4 characters, however large or small."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if size != 0 and (size >= 1e5 or size < 1e-3):
        return f"{value:.{max(0, digits - 3)}e}"
    whole = len(str(int(size)))
    return f"{value:.{max(0, digits - whole)}f}"


def rate(value: float | None) -> str:
    """Things per second: three significant digits, thousands set apart."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value >= 1000:
        return f"{value:,.0f}"
    if value != 0 and value < 0.01:
        return f"{value:.2g}"
    return f"{value:#.3g}" if value < 100 else f"{value:.0f}"


def size(value: int | None) -> str:
    """Bytes in binary units: `19.2 GiB`."""
    if value is None:
        return UNKNOWN
    amount, power = float(value), 0
    while abs(amount) >= 1024 and power < len(_UNITS) - 1:
        amount, power = amount / 1024, power + 1
    unit = _UNITS[power]
    if unit == "B":
        return f"{int(amount)} B"
    return f"{amount:.0f} {unit}" if amount >= 100 else f"{amount:.3g} {unit}"


def duration(seconds: float | None) -> str:
    """`3 s`, `4 min 05 s`, `2 h 05 min`, `3 d 04 h`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return UNKNOWN
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def short_duration(seconds: float | None) -> str:
    """The largest unit alone: `3s`, `4m`, `2h`, `3d`."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return UNKNOWN
    whole = int(seconds)
    for unit_seconds, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= 2 * unit_seconds or (whole >= unit_seconds and unit != "m"):
            return f"{whole // unit_seconds}{unit}"
    return f"{whole}s" if whole < 60 else f"{whole // 60}m"


def clock(t: float | None, now_t: float | None = None) -> str:
    """Local wall time; with the day when it is not today's: `23:41`, `Tue 07:02`, `2026-08-21 07:02`."""
    if t is None or not math.isfinite(t):
        return UNKNOWN
    now = time.time() if now_t is None else now_t
    try:
        then, today = time.localtime(t), time.localtime(now)
    except (OverflowError, ValueError, OSError):
        return UNKNOWN
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    if 0 <= t - now < 6 * 86400:
        return time.strftime("%a %H:%M", then)
    return time.strftime("%Y-%m-%d %H:%M", then)


def percent(part: float | None, whole: float | None) -> str:
    """`25 %`; never 100 % before it is whole."""
    if part is None or not whole:
        return UNKNOWN
    share = 100 * part / whole
    return "99 %" if 99 <= share < 100 else f"{share:.0f} %"
