"""Folds events into a `RunState`, one by one.

The fields fed by the worker's file and by the supervisor's file are disjoint, except for answers and
warnings, so the order in which the two files are read does not matter.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable
from typing import Any, Final

from llmtui.core.runs import events as ev
from llmtui.core.runs.clock import boot_id, boot_seconds
from llmtui.core.runs.directory import RunInfo
from llmtui.core.runs.speed import eta, speed
from llmtui.core.runs.state import FINAL_STATES, Curve, Liveness, PhaseState, RunState, empty_curve

_KEEP: Final = 200  # samples of hardware, warnings and answers kept in the state
_PAUSES: Final = frozenset({"evaluating", "saving", "generating"})


class Fold:
    """The growing state of one run; `snapshot` gives the immutable value."""

    def __init__(self, info: RunInfo) -> None:
        self.info = info
        self._curve = empty_curve()
        self._length = 0
        self._session_start = 0
        self._values: dict[str, Any] = {"attempt": 0}
        self._lists: dict[str, list[Any]] = {
            name: []
            for name in (
                "evals", "samples", "checkpoints", "warnings", "bad_steps", "batch_sizes", "answers",
                "attempts", "hardware_history",
            )
        }  # fmt: skip
        self._phase: PhaseState | None = None
        self._phase_seconds: dict[str, float] = {}
        self._state: ev.StateEvent | None = None
        self._exit: ev.Exit | None = None
        self._worker_boot = ""
        self._worker_m = 0.0  # newest m of the worker's file
        self._last_t = 0.0
        self._started_t: float | None = None
        self._ended_t: float | None = None
        self._train_begin: float | None = None  # m of this attempt's first training phase
        self._train_before = 0.0  # training seconds of earlier attempts
        self._steps_before = 0  # steps run by earlier attempts, dropped ones included
        self._steps_session = 0
        self._busy = 0.0  # seconds of this session's steps, pauses left out
        self._tokens = 0
        self._peaks: dict[int, ev.MemoryGpu] = {}
        self._hardware_peaks: dict[int, ev.HardwarePeak] = {}
        self._handlers: dict[type, Callable[[Any], None]] = {
            ev.WorkerStart: self._worker_start, ev.PhaseEvent: self._on_phase, ev.Plan: self._plan,
            ev.Step: self._step, ev.Eval: self._eval, ev.Memory: self._memory,
            ev.Checkpoint: self._checkpoint, ev.CheckpointRemoved: self._checkpoint_removed,
            ev.Sample: self._sample, ev.BatchSize: self._keep("batch_sizes"), ev.FirstBatches: self._first_batches,
            ev.WarningEvent: self._keep("warnings"),
            ev.ErrorEvent: self._set("error"), ev.Result: self._set("result"), ev.Answer: self._keep("answers"),
            ev.Exit: self._on_exit, ev.StateEvent: self._on_state, ev.Attempt: self._keep("attempts"),
            ev.Hardware: self._hardware, ev.HardwarePeaks: self._on_hardware_peaks, ev.GpuFinal: self._gpu_final,
        }  # fmt: skip

    # --- feeding ---------------------------------------------------------------------------------

    def apply(self, event: ev.EventBase) -> None:
        """Take one event of either file."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        if event.t > self._last_t:
            self._last_t = event.t

    def _keep(self, name: str) -> Callable[[ev.EventBase], None]:
        def keep(event: ev.EventBase) -> None:
            self._lists[name].append(event)
            if name in ("warnings", "answers"):
                del self._lists[name][:-_KEEP]

        return keep

    def _set(self, name: str) -> Callable[[ev.EventBase], None]:
        def put(event: ev.EventBase) -> None:
            self._values[name] = event

        return put

    def _worker_start(self, event: ev.WorkerStart) -> None:
        self._close_session()
        self._worker_boot = event.boot_id
        self._values["attempt"] = event.attempt
        self._values["error"] = None
        self._exit = None
        self._worker_m = event.m
        self._started_t = self._started_t or event.t
        self._ended_t = None

    def _close_session(self) -> None:
        if self._train_begin is not None:
            self._train_before += max(0.0, self._worker_m - self._train_begin)
        self._steps_before += self._steps_session
        self._steps_session = 0
        self._train_begin = None
        self._phase = None

    def _tick(self, m: float) -> None:
        if m > self._worker_m:
            self._worker_m = m

    def _on_phase(self, event: ev.PhaseEvent) -> None:
        if self._phase is not None and self._phase.name == event.name:
            since = self._phase.since_m
        else:
            self._account_phase(event.m)
            since = event.m
        if event.name == "training" and self._train_begin is None:
            self._train_begin = event.m
        self._phase = PhaseState(event.name, event.done, event.total, event.text, since)
        self._tick(event.m)

    def _account_phase(self, m: float) -> None:
        if self._phase is not None:
            name = self._phase.name
            self._phase_seconds[name] = self._phase_seconds.get(name, 0.0) + max(0.0, m - self._phase.since_m)

    def _plan(self, event: ev.Plan) -> None:
        self._values["plan"] = event
        self._values["attempt"] = event.attempt
        self._values["result"] = None
        self._drop_after(event.from_step)
        self._session_start = self._length
        self._busy = 0.0
        self._tick(event.m)

    def _drop_after(self, step: int) -> None:
        """Forget what an earlier attempt did after the checkpoint this one starts from."""
        old, keep = self._curve, self._length
        while keep and old.step[keep - 1] > step:
            keep -= 1
        if keep < self._length:  # older snapshots share the old arrays, so cut a copy
            self._curve = Curve(keep, *(a[:keep] for a in _arrays(old)))
            self._length = keep
            self._tokens = sum(self._curve.tokens)
        lists = self._lists
        for name in ("evals", "batch_sizes"):
            lists[name] = [e for e in lists[name] if e.step <= step]
        lists["samples"] = [e for e in lists["samples"] if e.step <= step]
        lists["bad_steps"] = [b for b in lists["bad_steps"] if b[0] <= step]

    def _step(self, event: ev.Step) -> None:
        curve = self._curve
        curve.step.append(event.step)
        curve.epoch.append(event.epoch)
        curve.loss.append(math.nan if event.loss is None else event.loss)
        curve.learning_rate.append(event.learning_rate)
        curve.grad_norm.append(math.nan if event.grad_norm is None else event.grad_norm)
        curve.tokens.append(event.tokens)
        curve.seconds.append(event.seconds)
        curve.m.append(event.m)
        self._length += 1
        self._steps_session += 1
        self._busy += event.seconds
        self._tokens += event.tokens
        if event.bad or event.loss is None:
            self._lists["bad_steps"].append((event.step, event.bad or "nan"))
        self._tick(event.m)

    def _eval(self, event: ev.Eval) -> None:
        self._lists["evals"] = [e for e in self._lists["evals"] if e.step != event.step] + [event]
        self._tick(event.m)

    def _sample(self, event: ev.Sample) -> None:
        same = (event.step, event.index)
        self._lists["samples"] = [e for e in self._lists["samples"] if (e.step, e.index) != same] + [event]
        self._tick(event.m)

    def _memory(self, event: ev.Memory) -> None:
        self._values["memory"] = event
        for gpu in event.gpus:
            old = self._peaks.get(gpu.index)
            self._peaks[gpu.index] = gpu if old is None else _higher(old, gpu)
        self._tick(event.m)

    def _first_batches(self, event: ev.FirstBatches) -> None:
        self._values["first_batches"] = event
        self._tick(event.m)

    def _checkpoint(self, event: ev.Checkpoint) -> None:
        kept = [c for c in self._lists["checkpoints"] if c.step != event.step]
        self._lists["checkpoints"] = [*kept, event]
        self._tick(event.m)

    def _checkpoint_removed(self, event: ev.CheckpointRemoved) -> None:
        kept = [c for c in self._lists["checkpoints"] if c.path != event.path]
        self._lists["checkpoints"] = kept

    def _on_exit(self, event: ev.Exit) -> None:
        self._account_phase(event.m)
        self._phase = None
        self._exit = event
        self._ended_t = event.t
        self._tick(event.m)

    def _on_state(self, event: ev.StateEvent) -> None:
        self._state = event
        if event.state in ("queued", "starting"):
            self._ended_t = None
        elif event.state in FINAL_STATES and self._ended_t is None:
            # A supervisor that adopts a run hours after its worker's last word is not what ended it.
            self._ended_t = event.t

    def _hardware(self, event: ev.Hardware) -> None:
        self._values["hardware"] = event
        history = self._lists["hardware_history"]
        history.append(event)
        del history[:-_KEEP]
        for gpu in event.gpus:
            self._peak(ev.HardwarePeak(index=gpu.index, uuid=gpu.uuid, name=gpu.name, used=gpu.used,
                                       this_run=gpu.this_run, total=gpu.total))  # fmt: skip

    def _on_hardware_peaks(self, event: ev.HardwarePeaks) -> None:
        for peak in event.gpus:
            self._peak(peak)

    def _peak(self, new: ev.HardwarePeak) -> None:
        old = self._hardware_peaks.get(new.index, new)
        self._hardware_peaks[new.index] = ev.HardwarePeak(
            index=new.index, uuid=new.uuid or old.uuid, name=new.name or old.name,
            used=_max(old.used, new.used), this_run=_max(old.this_run, new.this_run),
            total=_max(old.total, new.total),
        )  # fmt: skip

    def _gpu_final(self, event: ev.GpuFinal) -> None:
        self._values["gpu_final"] = tuple(event.gpus)

    # --- reading ---------------------------------------------------------------------------------

    def snapshot(self, liveness: Liveness, now_m: float | None = None, now_t: float | None = None) -> RunState:
        """The state as it is now. `now_m` (CLOCK_BOOTTIME) and `now_t` default to the clocks."""
        now_m = boot_seconds() if now_m is None else now_m
        now_t = time.time() if now_t is None else now_t
        state, cause, kind, hint, code = self._judge(liveness)
        training = liveness.worker and self._exit is None and self._worker_boot == boot_id()
        seconds = self._training_seconds(now_m if training else self._worker_m)
        session = self._session_seconds(now_m if training else self._worker_m)
        length, plan = self._length, self._values.get("plan")
        curve = _shared(self._curve, length)
        step = curve.step[length - 1] if length else (plan.from_step if plan else 0)
        pace = speed(curve, self._session_start, seconds, self._steps_before + self._steps_session)
        pause = self._pause_per_step(session)
        left = plan.total_steps - step if plan else -1
        per_step = 1 / pace.it_per_second if pace.it_per_second else None
        fields: dict[str, Any] = {name: tuple(value) for name, value in self._lists.items()}
        fields |= {k: v for k, v in self._values.items() if v is not None}
        return RunState(
            info=self.info, state=state, cause=cause, cause_kind=kind, hint=hint, exit_code=code,
            liveness=liveness, phase=self._phase if liveness.worker else None, step=step,
            total_steps=plan.total_steps if plan else None,
            epoch=self._curve.epoch[length - 1] if length else None,
            curve=curve, memory_peaks=tuple(self._peaks.values()),
            hardware_peaks=tuple(self._hardware_peaks.values()), speed=pace,
            eta=eta(left, per_step, pause, now_t) if training else None, started_t=self._started_t,
            ended_t=self._ended_t, last_t=self._last_t or None,
            last_step_m=self._curve.m[length - 1] if length > self._session_start else None, now_m=now_m,
            seconds_by_phase=tuple(self._phase_seconds.items()), total_tokens=self._tokens if length else None,
            **fields,
        )  # fmt: skip

    def _training_seconds(self, until_m: float) -> float | None:
        seconds = self._train_before
        if self._train_begin is not None:
            seconds += max(0.0, until_m - self._train_begin)
        return seconds or None

    def _session_seconds(self, until_m: float) -> float | None:
        return None if self._train_begin is None else max(0.0, until_m - self._train_begin)

    def _pause_per_step(self, session_seconds: float | None) -> float | None:
        count = self._length - self._session_start
        if not count or session_seconds is None:
            return None
        end = self._curve.m[self._length - 1]
        begin = self._train_begin or 0.0
        return max(0.0, (end - begin) - self._busy) / count

    def _judge(self, liveness: Liveness) -> tuple[ev.State, str, str, str, int | None]:
        """The state's name, from the supervisor's word, the worker's last line and the locks."""
        word, exit_ = self._state, self._exit
        if word is not None and word.state in FINAL_STATES and not (liveness.any and word.state == "interrupted"):
            return word.state, word.cause, word.kind, word.hint, word.exit_code
        if liveness.any:
            return self._judge_living(liveness)
        if exit_ is not None:  # finished is known without a supervisor
            error = self._values.get("error")
            hint = error.hint if error else ""
            code = {"finished": 0, "stopped": 4}.get(exit_.outcome, error.exit_code if error else 1)
            return exit_.outcome, exit_.cause, error.kind if error else "", hint, code
        if word is None and not self._last_t:
            return "interrupted", "it was created but never started", "", f"llmtui resume {self.info.id}", 4
        cause = "supervisor and worker are gone without a last word (killed, or the machine restarted)"
        return "interrupted", cause, "gone", f"llmtui resume {self.info.id}", 4

    def _judge_living(self, liveness: Liveness) -> tuple[ev.State, str, str, str, int | None]:
        word = self._state
        if not liveness.supervisor:
            cause = "the supervisor is gone; the worker goes on and is adopted by the next llmtui command"
            return "running", cause, "", "", None
        if word is None:
            return "starting", "", "", "", None
        return word.state, word.cause, word.kind, word.hint, word.exit_code


def _arrays(curve: Curve) -> tuple[array[Any], ...]:
    return (curve.step, curve.epoch, curve.loss, curve.learning_rate, curve.grad_norm, curve.tokens,
            curve.seconds, curve.m)  # fmt: skip


def _shared(curve: Curve, length: int) -> Curve:
    return Curve(length, *_arrays(curve))


def _max(a: int | None, b: int | None) -> int | None:
    known = [x for x in (a, b) if x is not None]
    return max(known) if known else None


def _higher(old: ev.MemoryGpu, new: ev.MemoryGpu) -> ev.MemoryGpu:
    return ev.MemoryGpu(
        index=new.index, uuid=new.uuid, weights=new.weights or old.weights,
        allocated=_max(old.allocated, new.allocated), reserved=_max(old.reserved, new.reserved),
        peak_allocated=_max(old.peak_allocated, new.peak_allocated),
        peak_reserved=_max(old.peak_reserved, new.peak_reserved),
    )  # fmt: skip
