"""What a run is right now: an immutable value, the same for the TUI, the commands and the summary.

Numbers that are not known are None and shown as "–".
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field

from llmtui.core.runs import events
from llmtui.core.runs.directory import RunInfo

FINAL_STATES = frozenset({"finished", "stopped", "failed", "interrupted"})
RESUMABLE_STATES = frozenset({"stopped", "failed", "interrupted"})


@dataclass(frozen=True, slots=True)
class Liveness:
    """Who lives, as the locks say."""

    supervisor: bool
    worker: bool

    @property
    def any(self) -> bool:
        """Whether any process of the run lives."""
        return self.supervisor or self.worker


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The training curve, one entry per optimizer step, as typed arrays of equal length.

    The arrays are shared between snapshots and only ever grow: read no further than `length`.
    A NaN or inf loss is stored as NaN (its kind is in `RunState.bad_steps`). `m` is CLOCK_BOOTTIME seconds.
    """

    length: int
    step: array[int]
    epoch: array[float]
    loss: array[float]
    learning_rate: array[float]
    grad_norm: array[float]
    tokens: array[int]
    seconds: array[float]
    m: array[float]


def empty_curve() -> Curve:
    """A curve without steps."""
    return Curve(0, array("q"), array("d"), array("d"), array("d"), array("d"), array("q"), array("d"), array("d"))


@dataclass(frozen=True, slots=True)
class PhaseState:
    """The phase the worker is in. `since_m` in CLOCK_BOOTTIME seconds."""

    name: str
    done: int
    total: int | None
    text: str
    since_m: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Session speeds. `it_per_second` leaves pauses (eval, save) out over a moving window;
    `overall_it_per_second` is steps ÷ whole training time, as published tables give it."""

    it_per_second: float | None = None
    overall_it_per_second: float | None = None
    tokens_per_second: float | None = None
    training_seconds: float | None = None
    pause_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Eta:
    """Time left including expected pauses, and when that is (unix seconds)."""

    seconds: float
    finish_t: float
    includes: str


@dataclass(frozen=True, slots=True)
class RunState:
    """One run, whole."""

    info: RunInfo
    state: events.State
    cause: str = ""
    cause_kind: str = ""
    hint: str = ""
    exit_code: int | None = None
    liveness: Liveness = field(default_factory=lambda: Liveness(False, False))
    attempt: int = 0
    phase: PhaseState | None = None
    plan: events.Plan | None = None
    step: int = 0
    total_steps: int | None = None
    epoch: float | None = None
    curve: Curve = field(default_factory=empty_curve)
    evals: tuple[events.Eval, ...] = ()
    samples: tuple[events.Sample, ...] = ()
    checkpoints: tuple[events.Checkpoint, ...] = ()
    warnings: tuple[events.WarningEvent, ...] = ()
    bad_steps: tuple[tuple[int, str], ...] = ()
    batch_sizes: tuple[events.BatchSize, ...] = ()
    first_batches: events.FirstBatches | None = None
    answers: tuple[events.Answer, ...] = ()
    attempts: tuple[events.Attempt, ...] = ()
    memory: events.Memory | None = None
    memory_peaks: tuple[events.MemoryGpu, ...] = ()
    hardware: events.Hardware | None = None
    hardware_history: tuple[events.Hardware, ...] = ()
    hardware_peaks: tuple[events.HardwarePeak, ...] = ()
    gpu_final: tuple[events.HardwareGpu, ...] = ()
    result: events.Result | None = None
    error: events.ErrorEvent | None = None
    speed: Speed = field(default_factory=Speed)
    eta: Eta | None = None
    started_t: float | None = None
    ended_t: float | None = None
    last_t: float | None = None
    last_step_m: float | None = None
    now_m: float = 0.0
    seconds_by_phase: tuple[tuple[str, float], ...] = ()
    total_tokens: int | None = None
    damaged_lines: int = 0

    @property
    def id(self) -> str:
        """The run's id."""
        return self.info.id

    @property
    def alive(self) -> bool:
        """Whether a process of the run lives."""
        return self.liveness.any

    @property
    def final(self) -> bool:
        """Whether the run has ended (it may be resumable)."""
        return self.state in FINAL_STATES

    @property
    def best_eval(self) -> events.Eval | None:
        """The evaluation with the lowest loss; NaN never wins."""
        known = [e for e in self.evals if e.loss is not None]
        return min(known, key=lambda e: (e.loss or 0.0, e.step)) if known else None

    @property
    def last_loss(self) -> float | None:
        """The newest step's loss; None before the first step or when it was not finite."""
        if not self.curve.length:
            return None
        loss = self.curve.loss[self.curve.length - 1]
        return None if math.isnan(loss) else loss
