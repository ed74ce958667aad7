"""Interleaved blocks of two or more contestants, with median and spread."""

from __future__ import annotations

import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds (or another unit) of one contestant over all blocks."""

    name: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> str:
        return f"{min(self.values):.3g}–{max(self.values):.3g}"


def interleaved(contestants: Mapping[str, Callable[[], float]], blocks: int = 5) -> dict[str, Timing]:
    """Run every contestant once per block, in turn, after one unmeasured round."""
    for run in contestants.values():
        run()
    seen: dict[str, list[float]] = {name: [] for name in contestants}
    for block in range(blocks):
        names = list(contestants) if block % 2 == 0 else list(reversed(contestants))
        for name in names:
            seen[name].append(contestants[name]())
    return {name: Timing(name, tuple(values)) for name, values in seen.items()}


def seconds_of(command: list[str], **options: object) -> float:
    """Wall seconds of a command that must succeed."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    return time.perf_counter() - begin


def machine_line() -> str:
    """Processor, Python and library versions, for the head of a results file."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), platform.machine())
    libraries = ", ".join(f"{n} {metadata.version(n)}" for n in ("textual", "torch", "transformers", "peft"))
    return f"{cpu}, Python {platform.python_version()}, {libraries}, {time.strftime('%Y-%m-%d')}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
