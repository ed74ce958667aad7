"""One worker from its start (or adoption) to the end of its last process: watched, sampled, stopped, its end named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from llmtui.core.hardware.host import disk_free, ram_total
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.preset import Preset
from llmtui.core.process.causes import Cause, Ending, name_cause, oom_kills
from llmtui.core.process.hang import HangWatch, describe_hang
from llmtui.core.process.journal import Journal
from llmtui.core.process.sampling import Sampler
from llmtui.core.process.stopping import WORDS, Escalation, LifeSigns, StopLimits, requests_for
from llmtui.core.process.vram import VramBack
from llmtui.core.process.worker_process import WorkerProcess, bound_output
from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.requests import Request

TICK: Final = 0.5
_SAMPLE_EVERY: Final = 1.0


class Left(Exception):
    """The supervisor was told to go; the worker goes on without it."""


class Watch:
    """Watches one worker.

    Args:
        uuids: its cards; none is the CPU.
        offset: where in `events.jsonl` to begin reading.
        leaving: whether the supervisor was told to go.
    """

    def __init__(
        self, worker: WorkerProcess, attempt: int, preset: Preset, journal: Journal, nvml: NvmlReader, *,
        uuids: Sequence[str] = (), offset: int = 0, limits: StopLimits | None = None,
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self.worker = worker
        self.directory = worker.directory
        self.steps = 0
        """The highest step seen."""
        self.stopping = False
        """Whether somebody wants it to end."""
        self._attempt = attempt
        self._limits_preset = preset.limits
        self._journal = journal
        self._nvml = nvml
        self._uuids = tuple(uuids)
        self._limits = limits or StopLimits()
        self._leaving = leaving
        self._events = EventReader(self.directory.events)
        self._events.offset = offset
        self._exit: ev.Exit | None = None
        self._error: ev.ErrorEvent | None = None
        self._asked: dict[str, Escalation] = {}
        self._hang = HangWatch(preset.limits.no_step_minutes)
        self._life = LifeSigns(worker.pid)
        self._killed_for = self._hung_for = ""
        self._oom_before = oom_kills()

    def to_the_end(self) -> Cause:
        """Watch until every process of the worker is gone and its GPU memory is back.

        Raises:
            Left: the supervisor was told to go.
        """
        sampler = Sampler(self.directory, self._nvml, self._journal.write)
        back = VramBack(self._nvml, self._uuids)
        next_sample = 0.0
        while not self.worker.wait(TICK):
            if self._leaving():
                raise Left
            self._read()
            self._obey()
            if time.monotonic() >= next_sample:
                next_sample = time.monotonic() + _SAMPLE_EVERY
                sampler.sample(self.worker.tree, self._uuids)
                back.note(sampler.last, self.worker.tree.pids())
                self._warn_of_lost(sampler)
                bound_output(self.directory.output)
                if self._hang.newly_hung():
                    self._on_hang()
        self._read()
        gone = self._everything_is_gone(back)
        sampler.write_peaks()
        self.worker.close()
        cause = self._name(sampler)
        return cause if cause.state != "stopped" else _with(cause, gone)

    # --- what the worker says ---------------------------------------------------------------------

    def _read(self) -> None:
        for event in self._events.read_new():
            self._life.spoke()
            match event:
                case ev.WorkerStart():
                    self._exit, self._error = None, None
                case ev.Step():
                    self.steps = max(self.steps, event.step)
                case ev.ErrorEvent():
                    self._error = event
                case ev.Exit():
                    self._exit = event
                case ev.Answer():
                    self._answered(event)
                case _:
                    pass
            self._hang.progress(step=isinstance(event, ev.Step))

    def _answered(self, answer: ev.Answer) -> None:
        """An accepted stop counts from here on, even if its request was gone before it was seen; a refused one (no
        checkpoint could be written) is none any more: the run goes on."""
        if answer.request == "checkpoint":
            return
        if answer.accepted:
            self.stopping = True
            self._journal.state("stopping", WORDS[answer.request])
        elif self._asked.pop(answer.request_id, None) is not None and not self._asked:
            self.stopping = False
            self._journal.state("running", answer.text)

    # --- what users ask ---------------------------------------------------------------------------

    def _obey(self) -> None:
        for request in requests_for(self.directory, self._attempt):
            if request.request == "kill":
                self._kill_at_once(request)
            elif request.request != "checkpoint" and request.id not in self._asked:
                self.stopping = True
                self._asked[request.id] = Escalation(request, self._limits)
                self._journal.state("stopping", WORDS[request.request])
        quiet = self._life.quiet_seconds() if self._asked else 0.0
        for escalation in list(self._asked.values()):
            match escalation.due(quiet):
                case "terminate":
                    self._journal.warn("stop", "the worker does not answer the stop; it was sent SIGTERM")
                    self.worker.terminate()
                case "kill":
                    self._kill(escalation.sentence())
                case None:
                    pass

    def _kill_at_once(self, request: Request) -> None:
        self._journal.state("stopping", WORDS["kill"])
        self._kill("killed on request, without a checkpoint")
        self._journal.write(ev.Answer(request="kill", request_id=request.id, accepted=True, text="killed"))
        requests.remove(self.directory, request)

    def _kill(self, why: str) -> None:
        self.stopping = True
        self._killed_for = self._killed_for or why
        self.worker.kill()

    # --- what goes wrong --------------------------------------------------------------------------

    def _on_hang(self) -> None:
        minutes, then = self._limits_preset.no_step_minutes, self._limits_preset.on_hang
        said = f"no step and no other progress for {minutes:g} minutes"
        self._journal.warn("hang", f"{said}; {describe_hang(self.worker.pid, self.directory)}")
        if self.stopping:
            return
        if then == "stop":
            requests.send(self.directory, "stop", self._attempt)
        elif then == "restart":
            self._hung_for = f"it hung ({said}) and was killed, as limits.on_hang says"
            self.worker.kill()

    def _warn_of_lost(self, sampler: Sampler) -> None:
        for card in sampler.newly_lost():
            self._journal.warn("gpu_lost", f"{card} does not answer any more: look for Xid in dmesg, then reboot")

    # --- the end ------------------------------------------------------------------------------------

    def _everything_is_gone(self, back: VramBack) -> str:
        """Wait until the worker's processes and its GPU memory are gone; what to say of it after a stop."""
        stuck = self.worker.end_everything()
        if stuck:
            pids = ", ".join(str(pid) for pid in stuck)
            self._journal.warn(
                "stuck", f"processes {pids} do not die: they are stuck in the kernel; a reboot ends them"
            )
        problem = back.wait()
        if problem:
            self._journal.warn("vram", problem)
        if stuck or problem:
            return "but not all of it is gone: see the warnings"
        return "every process is gone" + (" and its GPU memory is back" if self._uuids else "")

    def _name(self, sampler: Sampler) -> Cause:
        return name_cause(
            Ending(
                run_id=self.directory.id, output=self.directory.output, returncode=self.worker.returncode,
                exit_=self._exit, error=self._error, oom_kills=oom_kills() - self._oom_before,
                killed_for=self._killed_for, hung_for=self._hung_for, lost_cards=sampler.lost,
                disk_free=disk_free(self.directory.path), peak_rss=sampler.peak_rss or None, ram=ram_total(),
            )
        )  # fmt: skip


def _with(cause: Cause, gone: str) -> Cause:
    text = f"{cause.text}; {gone}" if cause.text else gone
    return Cause(cause.state, text, cause.kind, cause.hint, cause.exit_code)
