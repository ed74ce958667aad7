"""The events of a run: one tagged struct per line of `events.jsonl` and `monitor.jsonl`.

`n` is the line's number in its file, `t` unix seconds, `m` CLOCK_BOOTTIME seconds. Unknown types
and fields are ignored by readers, so that old readers open new runs; a changed meaning gets a new name.
Sizes are bytes, durations seconds. `None` means unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Phase = Literal[
    "downloading",
    "loading_model",
    "loading_dataset",
    "tokenizing",
    "training",
    "evaluating",
    "saving",
    "generating",
    "finalizing",
]
State = Literal["queued", "starting", "running", "stopping", "finished", "stopped", "failed", "interrupted"]
RequestKind = Literal["stop", "stop_now", "kill", "checkpoint"]


class EventBase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every line has."""

    n: int = 0
    t: float = 0.0
    m: float = 0.0


# --- written by worker rank 0 into events.jsonl ---------------------------------------------------


class WorkerStart(EventBase, frozen=True, kw_only=True, tag="worker_start"):
    """First line of an attempt: the boot its `m` belongs to, and who writes."""

    boot_id: str
    attempt: int
    pid: int


class PhaseEvent(EventBase, frozen=True, kw_only=True, tag="phase"):
    """What the worker is doing now; `total` is None when unknown. The unit is the phase's own:
    bytes when downloading or loading, rows when tokenizing, batches when evaluating, prompts when generating."""

    name: Phase
    done: int = 0
    total: int | None = None
    text: str = ""


class Plan(EventBase, frozen=True, kw_only=True, tag="plan"):
    """What this attempt will do. Steps after `from_step` on the curve belong to an earlier attempt."""

    attempt: int
    from_step: int
    total_steps: int
    epochs: float
    steps_per_epoch: int
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    processes: int
    effective_batch: int
    warmup_steps: int
    train_rows: int
    val_rows: int
    dropped: dict[str, int] = {}
    train_tokens: int | None = None
    tokens_per_epoch: int | None = None
    trainable_parameters: int
    total_parameters: int
    dtype: str
    attention: str
    quantization: str = "none"
    device: str = "cpu"
    data_hash: str = ""
    base_model: str = ""
    notes: list[str] = []


class Step(EventBase, frozen=True, kw_only=True, tag="step"):
    """One optimizer step. `loss` is the mean over the trained tokens of the global batch (None = NaN or
    inf, said in `bad`), `tokens` real ones without padding, `seconds` the step without pauses."""

    step: int
    epoch: float
    loss: float | None
    learning_rate: float
    grad_norm: float | None = None
    tokens: int = 0
    trained_tokens: int = 0
    seconds: float = 0.0
    bad: str = ""


class LabelScore(msgspec.Struct, frozen=True, kw_only=True):
    """The validation rows of one label, and the share of them answered with exactly its name (0..1)."""

    rows: int
    exact_match: float


class Eval(EventBase, frozen=True, kw_only=True, tag="eval"):
    """An evaluation: mean loss per trained token, exp of it, mean token accuracy (0..1); for labelled rows the share
    that is answered with exactly the label, over all and by label."""

    step: int
    loss: float | None
    perplexity: float | None = None
    accuracy: float | None = None
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: bool = False
    exact_match: float | None = None
    by_label: dict[str, LabelScore] = {}


class MemoryGpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU as torch's allocator sees it, bytes."""

    index: int
    uuid: str = ""
    weights: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    peak_allocated: int | None = None
    peak_reserved: int | None = None


class Memory(EventBase, frozen=True, kw_only=True, tag="memory"):
    """The worker's memory: per GPU, and its resident set on the host."""

    phase: str
    gpus: list[MemoryGpu] = []
    rss: int | None = None


class Checkpoint(EventBase, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint that is complete and verified on local disk. `path` is relative to the run directory."""

    step: int
    path: str
    bytes: int
    seconds: float
    reason: str = "save_steps"


class CheckpointRemoved(EventBase, frozen=True, kw_only=True, tag="checkpoint_removed"):
    """A checkpoint deleted by rotation or passed over as broken."""

    step: int
    path: str
    reason: str


class Sample(EventBase, frozen=True, kw_only=True, tag="sample"):
    """An answer of the model to one of the preset's prompts at a step (0 = before training)."""

    step: int
    index: int
    prompt: str
    text: str
    tokens: int
    seconds: float
    stopped: str = ""


class BatchSize(EventBase, frozen=True, kw_only=True, tag="batch_size"):
    """The micro-batch was made smaller after running out of memory; the effective batch stays."""

    step: int
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    effective_batch: int
    cause: str


class FirstBatches(EventBase, frozen=True, kw_only=True, tag="first_batches"):
    """The hash of the input ids and labels that were fed first (`core.data.fed`): what `llmtui data --json` shows."""

    batches: int
    hash: str


class WarningEvent(EventBase, frozen=True, kw_only=True, tag="warning"):
    """Something the user should know; `code` is stable, `text` for people."""

    code: str
    text: str


class ErrorEvent(EventBase, frozen=True, kw_only=True, tag="error"):
    """Why the attempt failed."""

    kind: str
    message: str
    place: str = ""
    hint: str = ""
    exit_code: int = 1


class Result(EventBase, frozen=True, kw_only=True, tag="result"):
    """The result on disk: `adapter/` or `model/`, relative to the run directory, and the step it is from."""

    path: str
    kind: Literal["adapter", "model"]
    hash: str
    step: int
    bytes: int
    source: Literal["last", "best"] = "last"


class Answer(EventBase, frozen=True, kw_only=True, tag="answer"):
    """A request was obeyed or refused."""

    request: RequestKind
    request_id: str
    accepted: bool
    text: str = ""


class Exit(EventBase, frozen=True, kw_only=True, tag="exit"):
    """The worker's last line: how the attempt ended as it knows itself."""

    outcome: Literal["finished", "stopped", "failed"]
    step: int
    cause: str = ""


# --- written by the supervisor into monitor.jsonl --------------------------------------------------


class SupervisorStart(EventBase, frozen=True, kw_only=True, tag="supervisor_start"):
    """First line of a supervisor: the boot its `m` belongs to."""

    boot_id: str
    pid: int


class StateEvent(EventBase, frozen=True, kw_only=True, tag="state"):
    """The run's state and its cause in a sentence; `kind` names the cause of a failure."""

    state: State
    cause: str = ""
    kind: str = ""
    hint: str = ""
    exit_code: int | None = None


class Attempt(EventBase, frozen=True, kw_only=True, tag="attempt"):
    """A worker was started: which attempt, from which checkpoint (step None = from the beginning)."""

    attempt: int
    from_step: int | None = None
    checkpoint: str = ""
    pid: int = 0
    gpus: list[str] = []


class HardwareGpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU as NVML sees it. Bytes, percent, MHz, watts, °C; None = not supported there."""

    index: int
    uuid: str = ""
    name: str = ""
    used: int | None = None
    total: int | None = None
    this_run: int | None = None
    others: int | None = None
    utilization_gpu: int | None = None
    utilization_memory: int | None = None
    clock_sm: int | None = None
    clock_memory: int | None = None
    throttle_reasons: list[str] = []
    power: float | None = None
    power_limit: float | None = None
    temperature: int | None = None
    lost: bool = False


class Hardware(EventBase, frozen=True, kw_only=True, tag="hardware"):
    """A sample of the machine. `note` says why there are no GPUs, if that needs saying."""

    gpus: list[HardwareGpu] = []
    cpu_percent: float | None = None
    worker_cpu_percent: float | None = None
    ram_used: int | None = None
    ram_total: int | None = None
    worker_rss: int | None = None
    disk_free: int | None = None
    disk_total: int | None = None
    note: str = ""


class GpuFinal(EventBase, frozen=True, kw_only=True, tag="gpu_final"):
    """What each card showed as used when training ended, before the worker left (the articles' figure), and
    the peaks that the supervisor saw while the run lived."""

    gpus: list[HardwareGpu] = []


class HardwarePeak(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The highest values of one GPU over the run so far."""

    index: int
    uuid: str = ""
    name: str = ""
    used: int | None = None
    this_run: int | None = None
    total: int | None = None


class HardwarePeaks(EventBase, frozen=True, kw_only=True, tag="hardware_peaks"):
    """Peaks over the attempt as NVML saw them at 1 Hz; written when the worker ends."""

    gpus: list[HardwarePeak] = []
    worker_rss: int | None = None


WORKER_EVENTS: tuple[type[EventBase], ...] = (
    WorkerStart, PhaseEvent, Plan, Step, Eval, Memory, Checkpoint, CheckpointRemoved, Sample, BatchSize,
    FirstBatches, WarningEvent, ErrorEvent, Result, Answer, Exit, GpuFinal,
)  # fmt: skip
SUPERVISOR_EVENTS: tuple[type[EventBase], ...] = (
    SupervisorStart, StateEvent, Attempt, Hardware, HardwarePeaks, GpuFinal, Answer, WarningEvent,
)  # fmt: skip

Event = (
    WorkerStart | PhaseEvent | Plan | Step | Eval | Memory | Checkpoint | CheckpointRemoved | Sample
    | BatchSize | FirstBatches | WarningEvent | ErrorEvent | Result | Answer | Exit | SupervisorStart | StateEvent
    | Attempt | Hardware | HardwarePeaks | GpuFinal
)  # fmt: skip

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event)
_encoder = msgspec.json.Encoder()


def label_score(value: LabelScore | Mapping[str, Any]) -> LabelScore:
    """A score as it is, or read from JSON."""
    return value if isinstance(value, LabelScore) else msgspec.convert(value, LabelScore)


def encode(event: EventBase) -> bytes:
    """One line with its newline."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> EventBase | None:
    """The event of a line; None when the type is unknown or the line is damaged."""
    try:
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return event if isinstance(event, EventBase) else None
