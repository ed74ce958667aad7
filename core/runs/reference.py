"""Published results to compare own runs with: one file format, each figure with its machine, versions and source.

The files are `presets/reference/results/*.yaml`. What a source does not give is None, never a guess.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

_FOLDER: Final = Path("reference") / "results"


class Machine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The box that was measured: `gpus` cards of one kind; versions by name (`cuda`, `torch`, …)."""

    gpu: str
    gpu_memory_gb: float
    gpus: int = 1
    host: str | None = None
    driver: str | None = None
    versions: dict[str, str] = {}


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row as the file has it; `time` is H:MM:SS or seconds."""

    preset: str
    machine: str
    time: str | float
    steps: int | None = None
    epochs: float | None = None
    batch: int | None = None
    accuracy: float | None = None
    used_mib: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    asked_tokens: int | None = None
    printed: dict[str, float] = {}


class _Law(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published line as the file has it."""

    machine: str
    what: Literal["used_mib", "seconds"]
    per: Literal["tokens", "output_tokens"]
    slope: float
    intercept: float
    preset: str | None = None
    model: str | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    title: str
    source: str
    conditions: str
    speed: str
    memory: str
    note: str
    machines: dict[str, Machine]
    rows: list[_Row]
    laws: list[_Law] = []


class Reference(msgspec.Struct, frozen=True):
    """One published measurement of a bundled preset.

    `seconds` is the whole time; `used_mib` what the cards together showed; `printed` holds figures exactly as the
    source prints them, which may be rounded differently from what its times give. `speed` and `memory` say in words
    how the source measures, `accuracy` is a share.
    """

    table: str
    title: str
    preset: str
    machine: Machine
    source: str
    conditions: str
    speed: str
    memory: str
    note: str
    seconds: float
    steps: int | None
    epochs: float | None
    batch: int | None
    accuracy: float | None
    used_mib: int | None
    input_tokens: int | None
    output_tokens: int | None
    asked_tokens: int | None
    printed: dict[str, float]

    @property
    def it_per_second(self) -> float | None:
        """Steps ÷ whole time (what a summary calls overall it/s); None when the source counts no steps."""
        return self.steps / self.seconds if self.steps else None

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens really made ÷ time, prefill included; None for training."""
        return self.output_tokens / self.seconds if self.output_tokens else None

    def rate(self, baseline: Reference) -> float:
        """How fast it is relative to another measurement of the same work, from the times."""
        return baseline.seconds / self.seconds


class Law(msgspec.Struct, frozen=True):
    """A published line: `what` = slope × `per` + intercept. `tokens` are input and output tokens together."""

    table: str
    preset: str | None
    model: str | None
    machine: Machine
    what: Literal["used_mib", "seconds"]
    per: Literal["tokens", "output_tokens"]
    slope: float
    intercept: float


@cache
def references() -> tuple[Reference, ...]:
    """Every published measurement, in the order of the files."""
    return tuple(_reference(name, table, row) for name, table in _tables() for row in table.rows)


def references_of(preset: str) -> tuple[Reference, ...]:
    """The published measurements of one bundled preset; empty when there are none."""
    return tuple(reference for reference in references() if reference.preset == preset)


@cache
def laws() -> tuple[Law, ...]:
    """Every published line."""
    return tuple(
        Law(name, law.preset, law.model, table.machines[law.machine], law.what, law.per, law.slope, law.intercept)
        for name, table in _tables()
        for law in table.laws
    )


def _reference(name: str, table: _Table, row: _Row) -> Reference:
    return Reference(
        table=name, title=table.title, preset=row.preset, machine=table.machines[row.machine], source=table.source,
        conditions=table.conditions, speed=table.speed, memory=table.memory, note=table.note,
        seconds=_seconds(row.time), steps=row.steps, epochs=row.epochs, batch=row.batch, accuracy=row.accuracy,
        used_mib=row.used_mib, input_tokens=row.input_tokens, output_tokens=row.output_tokens,
        asked_tokens=row.asked_tokens, printed=row.printed,
    )  # fmt: skip


def _tables() -> list[tuple[str, _Table]]:
    import llmtui.presets

    folder = Path(next(iter(llmtui.presets.__path__))) / _FOLDER
    return [(path.stem, msgspec.convert(_read(path), _Table)) for path in sorted(folder.glob("*.yaml"))]


def _read(path: Path) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def _seconds(time: str | float) -> float:
    if isinstance(time, float):
        return time
    hours, minutes, seconds = (int(part) for part in time.split(":"))
    return float(3600 * hours + 60 * minutes + seconds)
