"""The clocks of a run: wall time for people, CLOCK_BOOTTIME for durations, the boot they belong to."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path


def boot_seconds() -> float:
    """Seconds since boot, counting suspend; a clock step (NTP, DST) does not touch it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def boot_id() -> str:
    """The kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
