"""What is wrong with a run, or could soon be, in words. Pure: a state in, sentences out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from llmtui.core import words
from llmtui.core.runs.state import RunState

Severity = Literal["good", "warn", "bad"]

_QUIET_FACTOR: Final = 10  # a step may take so many times the usual before silence is worth a word
_QUIET_SECONDS: Final = 60.0
_LOW_DISK_BYTES: Final = 5 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence and how much it matters."""

    severity: Severity
    text: str


def health(state: RunState) -> list[Finding]:
    """Findings, the worst first; empty when there is nothing to say (nothing has happened yet)."""
    found = [*_losses(state), *_silence(state), *_disk(state), *_cards(state)]
    if state.alive and not state.liveness.supervisor:
        found.append(Finding("warn", "the supervisor is gone; the run goes on, any llmtui command adopts it"))
    order = {"bad": 0, "warn": 1, "good": 2}
    found.sort(key=lambda finding: order[finding.severity])
    if not found and state.alive and state.curve.length:
        found.append(Finding("good", _fine(state)))
    return found


def _fine(state: RunState) -> str:
    parts = ["no NaN"]
    if state.last_step_m is not None and state.phase is not None and state.phase.name == "training":
        parts.append(f"last step {words.duration(max(0.0, state.now_m - state.last_step_m))} ago")
    if state.hardware is not None and state.hardware.disk_free is not None:
        parts.append(f"{words.size(state.hardware.disk_free)} disk free")
    return "healthy: " + ", ".join(parts)


def _losses(state: RunState) -> list[Finding]:
    found = []
    if state.bad_steps:
        step, kind = state.bad_steps[-1]
        name = "NaN" if kind == "nan" else kind
        times = f", {len(state.bad_steps):,} steps in all" if len(state.bad_steps) > 1 else ""
        found.append(Finding("bad", f"loss was {name} at step {step:,}{times}"))
    if state.last_loss == 0.0:
        found.append(Finding("bad", "loss is exactly 0: nothing is being learned (are all labels masked?)"))
    return found


def _silence(state: RunState) -> list[Finding]:
    if not state.liveness.worker or state.phase is None or state.phase.name != "training":
        return []
    since = state.phase.since_m if state.last_step_m is None else max(state.last_step_m, state.phase.since_m)
    quiet = state.now_m - since
    usual = 1 / state.speed.it_per_second if state.speed.it_per_second else 0.0
    if quiet < max(_QUIET_SECONDS, _QUIET_FACTOR * usual):
        return []
    return [Finding("bad", f"no step for {words.duration(quiet)}")]


def _disk(state: RunState) -> list[Finding]:
    hardware = state.hardware
    if not state.alive or hardware is None or hardware.disk_free is None:
        return []
    need = max((c.bytes for c in state.checkpoints), default=0)
    free = words.size(hardware.disk_free)
    if need and hardware.disk_free < need + (need >> 3):
        return [Finding("bad", f"the next checkpoint may not fit: {free} disk free, the last took {words.size(need)}")]
    if hardware.disk_free < _LOW_DISK_BYTES:
        return [Finding("warn", f"only {free} disk free")]
    return []


def _cards(state: RunState) -> list[Finding]:
    if not state.alive or state.hardware is None:
        return []
    found = []
    for gpu in state.hardware.gpus:
        if gpu.lost:
            found.append(Finding("bad", f"GPU {gpu.index} is lost (fell off the bus); the machine needs a reboot"))
        slow = [reason for reason in gpu.throttle_reasons if reason not in ("idle", "gpu_idle", "none")]
        if slow:
            found.append(Finding("warn", f"GPU {gpu.index} is slowed down: {', '.join(slow)}"))
    return found
