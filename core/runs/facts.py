"""A run as facts for a machine: one function behind `ls`, `show`, `export` and the summary, so that they agree.

Seconds, bytes, unix times; None where nothing is known.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs.attempt import AttemptInfo, read_attempt
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.state import RunState


def run_row(state: RunState, directory: RunDirectory) -> dict[str, Any]:
    """The facts of one line of `ls`."""
    best, last = state.best_eval, state.evals[-1] if state.evals else None
    return {
        "id": state.id,
        "name": state.info.name,
        "preset": state.info.preset,
        "task": state.info.task,
        "state": state.state,
        "cause": state.cause,
        "exit_code": state.exit_code,
        "alive": state.alive,
        "attempt": state.attempt,
        "phase": state.phase.name if state.phase else None,
        "step": state.step,
        "total_steps": state.total_steps,
        "epoch": _round(state.epoch, 4),
        "loss": state.last_loss,
        "eval_loss": last.loss if last else None,
        "eval_accuracy": last.accuracy if last else None,
        "best_eval_loss": best.loss if best else None,
        "it_per_second": _round(state.speed.it_per_second),
        "overall_it_per_second": _round(state.speed.overall_it_per_second if state.final else None),
        "tokens_per_second": _round(state.speed.tokens_per_second),
        "eta_seconds": _round(state.eta.seconds, 1) if state.eta else None,
        "finish": _round(state.eta.finish_t, 1) if state.eta else None,
        "created": state.info.created,
        "started": state.started_t,
        "ended": state.ended_t,
        "directory": str(directory.path),
    }


def run_details(state: RunState, directory: RunDirectory) -> dict[str, Any]:
    """Everything of `show` and `export`: the row, and what the row has no room for."""
    attempts = attempt_infos(directory)
    return run_row(state, directory) | {
        "description": state.info.description,
        "parent": state.info.parent or None,
        "parent_step": state.info.parent_step,
        "command": list(state.info.command),
        "host": state.info.host,
        "user": state.info.user,
        "hint": state.hint or None,
        "preset_yaml": _preset_text(directory),
        "plan": _builtins(state.plan),
        "first_loss": _first_loss(state),
        "evals": [_builtins(e) for e in state.evals],
        "bad_steps": [{"step": step, "kind": kind} for step, kind in state.bad_steps],
        "samples": [_builtins(s) for s in state.samples],
        "checkpoints": [_builtins(c) for c in state.checkpoints],
        "warnings": [w.text for w in state.warnings],
        "batch_sizes": [_builtins(b) for b in state.batch_sizes],
        "result": _builtins(state.result),
        "error": _builtins(state.error),
        "training_seconds": _round(state.speed.training_seconds, 1),
        "seconds_by_phase": {name: round(seconds, 2) for name, seconds in state.seconds_by_phase},
        "total_tokens": state.total_tokens,
        "memory_peaks": [_builtins(m) for m in state.memory_peaks],
        "hardware_peaks": [_builtins(p) for p in state.hardware_peaks],
        "gpu_at_end": [_builtins(g) for g in state.gpu_final],
        "cpu": _builtins(state.hardware),
        "attempts": [msgspec.to_builtins(a) for a in attempts],
    }


def attempt_infos(directory: RunDirectory) -> list[AttemptInfo]:
    """What each attempt was started with, oldest first; damaged files are left out."""
    found = []
    for number in range(1, directory.last_attempt() + 1):
        try:
            found.append(read_attempt(directory, number))
        except LlmtuiError:
            continue
    return found


def _preset_text(directory: RunDirectory) -> str | None:
    try:
        return directory.preset.read_text("utf-8")
    except OSError:
        return None


def _first_loss(state: RunState) -> float | None:
    if not state.curve.length:
        return None
    loss = state.curve.loss[0]
    return None if math.isnan(loss) else loss


def _builtins(value: Any) -> Any:
    return None if value is None else msgspec.to_builtins(value)


def _round(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)
