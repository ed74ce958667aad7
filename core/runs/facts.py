"""A run as typed facts: the one source behind `ls`, `show`, `export` and the summary files, so that they agree.

Seconds, bytes, unix times, shares from 0 to 1; None where nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs import events as ev
from llmtui.core.runs.attempt import AttemptInfo, read_attempt
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState

FORMAT: Final = 1
_EVENTS: Final = ("plan", "evals", "samples", "checkpoints", "result", "error", "batch_sizes")


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `ls --json`, and the head of everything else.

    `it_per_second` leaves pauses out and is that of the last steps; `overall_it_per_second` is steps ÷ whole training
    time, as published tables give it.
    """

    id: str
    name: str
    preset: str
    task: str
    state: str
    cause: str
    exit_code: int | None
    alive: bool
    attempt: int
    phase: str | None
    step: int
    total_steps: int | None
    epoch: float | None
    loss: float | None
    eval_loss: float | None
    eval_accuracy: float | None
    best_eval_loss: float | None
    it_per_second: float | None
    overall_it_per_second: float | None
    tokens_per_second: float | None
    eta_seconds: float | None
    finish: float | None
    eval_exact_match: float | None = None
    created: float
    started: float | None
    ended: float | None
    directory: str


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU's memory over the run: torch's allocator, this run's processes, the whole card, the card at the end."""

    index: int
    name: str
    uuid: str
    total: int | None = None
    weights: int | None = None
    peak_allocated: int | None = None
    peak_reserved: int | None = None
    peak_process: int | None = None
    peak_card: int | None = None
    card_at_end: int | None = None


class Summary(RunRow, frozen=True, kw_only=True):
    """Everything of `show --json`, `export --format json` and `summary.json`.

    `mean_it_per_second` and `mean_tokens_per_second` are over all steps of the curve, pauses left out.
    """

    format: int
    description: str
    parent: str | None
    parent_step: int | None
    command: list[str]
    host: str
    user: str
    llmtui: str
    hint: str
    settings: dict[str, Any]
    preset_yaml: str
    plan: ev.Plan | None
    first_loss: float | None
    mean_it_per_second: float | None
    mean_tokens_per_second: float | None
    training_seconds: float | None
    seconds_by_phase: dict[str, float]
    total_tokens: int | None
    evals: list[ev.Eval]
    best_eval_step: int | None
    samples: list[ev.Sample]
    checkpoints: list[ev.Checkpoint]
    result: ev.Result | None
    error: ev.ErrorEvent | None
    warnings: list[str]
    bad_steps: list[tuple[int, str]]
    batch_sizes: list[ev.BatchSize]
    cards: list[Card]
    worker_rss: int | None
    attempts: list[AttemptInfo]


def run_row(state: RunState, directory: RunDirectory) -> RunRow:
    """The facts of one line."""
    return RunRow(**_row(state, directory))


def summarize(state: RunState, directory: RunDirectory, preset_yaml: str, attempts: Sequence[AttemptInfo]) -> Summary:
    """All facts of a run; a pure function of what it is given (of the directory only the path is used)."""
    best, seconds = state.best_eval, sum(state.curve.seconds[: state.curve.length])
    memory = state.hardware
    return Summary(
        **_row(state, directory), format=FORMAT,
        description=state.info.description, parent=state.info.parent or None, parent_step=state.info.parent_step,
        command=list(state.info.command), host=state.info.host, user=state.info.user, llmtui=state.info.llmtui,
        hint=state.hint, settings=_settings(preset_yaml), preset_yaml=preset_yaml, plan=state.plan,
        first_loss=_first_loss(state), mean_it_per_second=_round(state.curve.length / seconds if seconds else None),
        mean_tokens_per_second=_round(sum(state.curve.tokens[: state.curve.length]) / seconds if seconds else None, 1),
        training_seconds=_round(state.speed.training_seconds, 1),
        seconds_by_phase={name: round(spent, 2) for name, spent in state.seconds_by_phase},
        total_tokens=state.total_tokens, evals=list(state.evals),
        best_eval_step=best.step if best else None, samples=list(state.samples),
        checkpoints=list(state.checkpoints), result=state.result, error=state.error,
        warnings=[w.text for w in state.warnings], bad_steps=list(state.bad_steps),
        batch_sizes=list(state.batch_sizes), cards=_cards(state),
        worker_rss=memory.worker_rss if memory else None, attempts=list(attempts),
    )  # fmt: skip


def read_summary(directory: RunDirectory, state: RunState | None = None) -> Summary:
    """Read a run's directory and give its facts.

    Raises:
        DataError: `run.json` is missing or damaged.
    """
    state = read_state(directory) if state is None else state
    try:
        preset_yaml = directory.preset.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        preset_yaml = ""
    return summarize(state, directory, preset_yaml, attempt_infos(directory))


def attempt_infos(directory: RunDirectory) -> list[AttemptInfo]:
    """What each attempt was started with, oldest first; damaged files are left out."""
    found = []
    for number in range(1, directory.last_attempt() + 1):
        try:
            found.append(read_attempt(directory, number))
        except LlmtuiError:
            continue
    return found


def as_json(facts: RunRow) -> dict[str, Any]:
    """The facts as JSON values; an event's line number and clock mean nothing outside of its file and are left out."""
    value: dict[str, Any] = msgspec.to_builtins(facts)
    for name in _EVENTS:
        found = value.get(name) or []
        for event in found if isinstance(found, list) else [found]:
            for field in ("type", "n", "m"):
                event.pop(field, None)
    return value


def _row(state: RunState, directory: RunDirectory) -> dict[str, Any]:
    best, last = state.best_eval, state.evals[-1] if state.evals else None
    return {
        "id": state.id, "name": state.info.name, "preset": state.info.preset, "task": state.info.task,
        "state": state.state, "cause": state.cause, "exit_code": state.exit_code, "alive": state.alive,
        "attempt": state.attempt, "phase": state.phase.name if state.phase else None, "step": state.step,
        "total_steps": state.total_steps, "epoch": _round(state.epoch, 4), "loss": state.last_loss,
        "eval_loss": last.loss if last else None, "eval_accuracy": last.accuracy if last else None,
        "eval_exact_match": last.exact_match if last else None,
        "best_eval_loss": best.loss if best else None, "it_per_second": _round(state.speed.it_per_second),
        "overall_it_per_second": _round(state.speed.overall_it_per_second),
        "tokens_per_second": _round(state.speed.tokens_per_second, 1),
        "eta_seconds": _round(state.eta.seconds, 1) if state.eta else None,
        "finish": _round(state.eta.finish_t, 1) if state.eta else None, "created": state.info.created,
        "started": state.started_t, "ended": state.ended_t if state.final else None, "directory": str(directory.path),
    }  # fmt: skip


def _cards(state: RunState) -> list[Card]:
    """What the allocator and NVML say about each card, joined by UUID.

    torch counts the visible cards from 0 and NVML all of them in PCI order, so an index alone joins nothing.
    """
    at_end = {gpu.uuid: gpu for gpu in state.gpu_final}
    peaks = {peak.uuid: peak for peak in state.hardware_peaks}
    allocators = {gpu.uuid: gpu for gpu in state.memory_peaks if gpu.uuid}
    if not allocators and len(state.memory_peaks) == len(peaks):
        allocators = dict(zip(peaks, state.memory_peaks, strict=True))
    cards = []
    for uuid in dict.fromkeys([*peaks, *allocators, *at_end]):
        peak, mine, end = peaks.get(uuid), allocators.get(uuid), at_end.get(uuid)
        known = peak or end
        index = known.index if known else mine.index if mine else 0
        cards.append(
            Card(
                index=index, name=known.name if known else "", uuid=uuid, total=known.total if known else None,
                weights=mine.weights if mine else None, peak_allocated=mine.peak_allocated if mine else None,
                peak_reserved=mine.peak_reserved if mine else None, peak_process=peak.this_run if peak else None,
                peak_card=peak.used if peak else None, card_at_end=end.used if end else None,
            )
        )  # fmt: skip
    return sorted(cards, key=lambda card: card.index)


def _settings(preset_yaml: str) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        loaded = YAML(typ="safe", pure=True).load(preset_yaml)
    except YAMLError:
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _first_loss(state: RunState) -> float | None:
    if not state.curve.length:
        return None
    loss = state.curve.loss[0]
    return None if math.isnan(loss) else loss


def _round(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)
