"""The supervisor of one run: `python -m llmtui.core.process.supervise RUN_DIRECTORY`.

Holds `supervisor.lock` for its whole life, starts the worker (or adopts a living one), samples the machine, obeys and
escalates requests, names the cause of death, restarts from the last good checkpoint, has the summary written.
Killing it changes nothing for the worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from llmtui.core.errors import LlmtuiError, MachineError
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.preset import Preset, parse_preset
from llmtui.core.process import cards
from llmtui.core.process.causes import Cause, name_cause, oom_kills
from llmtui.core.process.hang import HangWatch, dump_stacks
from llmtui.core.process.sampling import Sampler
from llmtui.core.process.starting import describe_attempt
from llmtui.core.process.worker_process import WorkerProcess, bound_output, worker_command, worker_environment
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo, read_attempt, write_attempt
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventReader, EventWriter

_TICK: Final = 0.5
_STOP_NOW_LIMIT: Final = 30.0  # seconds until "stop now" becomes a kill
_STOP_SILENT_LIMIT: Final = 300.0  # seconds without a word after "stop" until it becomes a kill
_SUMMARY_LIMIT: Final = 120.0
_FIRST_PAUSE: Final = 5.0


class Supervisor:
    """One run's supervisor.

    Args:
        command: makes the worker's command line for an attempt; tests put a scripted worker in its place.
    """

    def __init__(
        self, directory: RunDirectory, command: Callable[[RunDirectory, int], list[str]] = worker_command,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:  # fmt: skip
        self.directory = directory
        self._command = command
        self._first_pause = first_pause
        self._monitor = EventWriter(directory.monitor)
        self._reader = NvmlReader()
        self._preset: Preset = parse_preset(directory.preset.read_text("utf-8"), directory.preset).preset
        self._claims: list[locks.Lock] = []
        self._asked: dict[str, float] = {}  # stop requests by id, and when they were first seen
        self._stopping = False
        self._killed_by_us = ""
        self._restart_after_hang = False
        self._exit: ev.Exit | None = None
        self._error: ev.ErrorEvent | None = None
        self._steps = 0
        self._write(ev.SupervisorStart(boot_id=boot_id(), pid=os.getpid()))

    def _write(self, event: ev.EventBase) -> None:
        try:
            self._monitor.write(event)
            if isinstance(event, ev.StateEvent | ev.Attempt):
                self._monitor.fsync()
        except OSError as error:
            print(f"monitor event not written: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def _state(self, state: ev.State, cause: str = "", kind: str = "", hint: str = "", code: int | None = None) -> None:
        self._write(ev.StateEvent(state=state, cause=cause, kind=kind, hint=hint, exit_code=code))

    # --- the run from start to end ------------------------------------------------------------------

    def run(self) -> int:
        """Supervise to the end; the run's exit code."""
        try:
            cause = self._adopt() if locks.is_held(self.directory.worker_lock) else self._attempts()
        except LlmtuiError as error:
            text = f"{error.place}: {error.message}" if error.place else error.message
            cause = Cause("failed", text, error.kind, error.hint, error.exit_code)
        self._state(cause.state, cause.text, cause.kind, cause.hint, cause.exit_code)
        self._summarize()
        self._monitor.close()
        return cause.exit_code

    def _adopt(self) -> Cause:
        """Go on watching a worker whose supervisor was killed."""
        attempt = self.directory.last_attempt()
        starts = [e for e in EventReader(self.directory.events).read_new() if isinstance(e, ev.WorkerStart)]
        if not starts:
            raise MachineError("a worker lives but has not said who it is", hint="llmtui stop --kill ends it")
        self._state("running", "adopted after the supervisor was killed")
        try:
            uuids = [gpu.uuid for gpu in read_attempt(self.directory, attempt).gpus]
        except LlmtuiError:
            uuids = []
        cause = self._watch(WorkerProcess(starts[-1].pid, None), attempt, uuids)
        return self._maybe_again(cause)

    def _attempts(self) -> Cause:
        return self._maybe_again(self._attempt())

    def _maybe_again(self, cause: Cause) -> Cause:
        """Restart after crashes, with growing pauses and a limit; never after a mistake that will repeat."""
        restarts, without_progress = 0, 0
        while self._may_restart(cause, restarts, without_progress):
            pause = self._first_pause * 2**restarts
            restarts += 1
            limit = self._preset.limits.restarts
            self._state("starting", f"{cause.text}; restart {restarts} of {limit} in {pause:g} s", cause.kind)
            if self._pause(pause):
                return Cause("stopped", "stopped while waiting for a restart", hint=cause.hint, exit_code=4)
            before = self._steps
            cause = self._attempt()
            without_progress = 0 if self._steps > before else without_progress + 1
        return cause

    def _may_restart(self, cause: Cause, restarts: int, without_progress: int) -> bool:
        if self._restart_after_hang:
            self._restart_after_hang = False
            return restarts < self._preset.limits.restarts
        wanted = self._preset.checkpoints.resume == "auto" and cause.again and not self._stopping
        return wanted and restarts < self._preset.limits.restarts and without_progress < 2

    def _pause(self, seconds: float) -> bool:
        """Wait; True when a stop was asked for meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._refuse_to_start():
                return True
            time.sleep(0.1)
        return False

    def _refuse_to_start(self) -> bool:
        stops = [
            r for r in requests.pending(self.directory, self.directory.last_attempt()) if r.request != "checkpoint"
        ]
        for request in stops:
            self._write(ev.Answer(request=request.request, request_id=request.id, accepted=True, text="not started"))
            requests.remove(self.directory, request)
        return bool(stops)

    def _attempt(self) -> Cause:
        """One worker from its start to its end."""
        number = self.directory.last_attempt() + 1
        self._state("starting")
        taken = self._wait_for_cards()
        if taken is None:
            return Cause("stopped", "taken out of the queue", hint=f"llmtui resume {self.directory.id}", exit_code=4)
        found = find_valid(self.directory)
        for sentence in found.passed_over:
            self._write(ev.WarningEvent(code="checkpoint", text=sentence))
        info = describe_attempt(
            self.directory, number, found, [AttemptGpu(index=c.index, uuid=c.uuid, name=c.name) for c in taken],
            self._reader.driver,
        )  # fmt: skip
        requests.clear(self.directory)
        write_attempt(self.directory, info)
        self._exit, self._error, self._killed_by_us = None, None, ""
        self._asked.clear()
        return self._start_and_watch(info, [c.uuid for c in taken])

    def _start_and_watch(self, info: AttemptInfo, uuids: Sequence[str]) -> Cause:
        offset = self.directory.events.stat().st_size if self.directory.events.exists() else 0
        worker = WorkerProcess.start(
            self._command(self.directory, info.attempt), self.directory,
            worker_environment(uuids, os.environ), self._claims,
        )  # fmt: skip
        self._write(
            ev.Attempt(attempt=info.attempt, from_step=info.from_step, checkpoint=info.checkpoint or "",
                       pid=worker.pid, gpus=list(uuids))
        )  # fmt: skip
        self._state("running")
        try:
            return self._watch(worker, info.attempt, uuids, offset=offset)
        finally:
            for lock in self._claims:
                lock.release()
            self._claims = []

    # --- cards ------------------------------------------------------------------------------------

    def _wait_for_cards(self) -> list[ev.HardwareGpu] | None:
        """The cards to use (none: the CPU), waiting in the queue if need be; None when taken out of it."""
        split = self._preset.gpu_split
        sampled, note = self._reader.sample(())
        ranked = cards.candidates(split, sampled, note)
        if not ranked or split.share:
            return ranked if isinstance(split.gpus, list) else ranked[:1]
        ticket = cards.Ticket(self.directory, split)
        said = False
        try:
            while True:
                taken = cards.try_cards(split, ranked, ticket)
                if taken:
                    self._claims = [lock for _, lock in taken]
                    self._warn_of_strangers([card for card, _ in taken])
                    return [card for card, _ in taken]
                if not said:
                    said = True
                    self._state("queued", "waiting for " + ("a GPU" if split.gpus == "auto" else f"GPU {split.gpus}"))
                if ticket.removed or self._refuse_to_start():
                    return None
                time.sleep(1.0)
                sampled, note = self._reader.sample(())
                ranked = cards.candidates(split, sampled, note)
        finally:
            ticket.leave()

    def _warn_of_strangers(self, taken: Sequence[ev.HardwareGpu]) -> None:
        for card in taken:
            if card.used and card.total and card.used > 1 << 30:
                text = f"GPU {card.index} has {card.used >> 20} of {card.total >> 20} MiB in use by others already"
                self._write(ev.WarningEvent(code="gpu_shared", text=text))

    # --- watching -----------------------------------------------------------------------------------

    def _watch(self, worker: WorkerProcess, attempt: int, uuids: Sequence[str], offset: int = 0) -> Cause:
        reader = EventReader(self.directory.events)
        reader.offset = offset
        sampler = Sampler(self.directory, self._reader, self._write)
        hang = HangWatch(self._preset.limits.no_step_minutes)
        oom_before, last_sample = oom_kills(), 0.0
        while not worker.wait(_TICK):
            self._read(reader)
            hang.note(self._steps)
            self._obey(worker, attempt)
            if time.monotonic() - last_sample >= 1.0:
                last_sample = time.monotonic()
                sampler.sample(worker.tree, uuids)
                bound_output(self.directory.output)
                if hang.hung:
                    self._on_hang(worker, hang, attempt)
        self._read(reader)
        worker.end_group()
        sampler.write_peaks()
        self._vram_is_back(worker, uuids)
        worker.close()
        return name_cause(
            self.directory.id, worker.returncode, self._exit, self._error, oom=oom_kills() > oom_before,
            killed_by_us=self._killed_by_us, output=self.directory.output,
        )  # fmt: skip

    def _read(self, reader: EventReader) -> None:
        """What the worker has said since; only the last word and the step count matter here."""
        for event in reader.read_new():
            match event:
                case ev.WorkerStart():
                    self._exit, self._error = None, None
                case ev.Step():
                    self._steps = event.step
                case ev.ErrorEvent():
                    self._error = event
                case ev.Exit():
                    self._exit = event
                case _:
                    pass

    def _obey(self, worker: WorkerProcess, attempt: int) -> None:
        """Kills at once; stops that the worker does not obey in time become kills, and say so."""
        now = time.monotonic()
        for request in requests.pending(self.directory, attempt):
            if request.request == "kill":
                self._kill(worker, "killed on request, without a checkpoint")
                self._write(ev.Answer(request="kill", request_id=request.id, accepted=True, text="killed"))
                requests.remove(self.directory, request)
            elif request.request in ("stop", "stop_now") and request.id not in self._asked:
                self._asked[request.id] = now
                self._stopping = True
                self._state("stopping", "after this step, with a checkpoint" if request.request == "stop" else "now")
            elif request.request == "stop_now" and now - self._asked[request.id] > _STOP_NOW_LIMIT:
                self._kill(worker, f"killed: the worker did not stop within {_STOP_NOW_LIMIT:g} s")
            elif request.request == "stop" and now - self._asked[request.id] > self._silent_limit():
                self._kill(worker, f"killed: no word from the worker for {_STOP_SILENT_LIMIT:g} s after the stop")

    def _silent_limit(self) -> float:
        """The limit for a stop: the worker must say nothing for that long (a save of a large model takes its time)."""
        try:
            quiet = time.time() - self.directory.events.stat().st_mtime
        except OSError:
            return _STOP_SILENT_LIMIT
        return _STOP_SILENT_LIMIT if quiet > _STOP_SILENT_LIMIT else float("inf")

    def _kill(self, worker: WorkerProcess, why: str) -> None:
        self._stopping = True
        self._killed_by_us = why
        worker.signal_group(signal.SIGKILL)

    def _on_hang(self, worker: WorkerProcess, hang: HangWatch, attempt: int) -> None:
        hang.reported = True
        minutes = self._preset.limits.no_step_minutes
        stacks = dump_stacks(worker.pid, self.directory)
        self._write(ev.WarningEvent(code="hang", text=f"no step for {minutes:g} minutes; {stacks}"))
        match self._preset.limits.on_hang:
            case "stop":
                requests.send(self.directory, "stop", attempt)
            case "restart":
                self._restart_after_hang = True
                worker.signal_group(signal.SIGKILL)
            case _:
                pass

    def _vram_is_back(self, worker: WorkerProcess, uuids: Sequence[str]) -> None:
        """A stop has ended only when the cards have the worker's memory back."""
        end = time.monotonic() + 10
        while uuids and time.monotonic() < end:
            if not any(pid == worker.pid for _, pid, _ in self._reader.processes()):
                return
            time.sleep(0.2)
        if uuids:
            self._write(
                ev.WarningEvent(code="vram", text="the worker is gone, but its GPU memory is not back after 10 s")
            )

    # --- the end ------------------------------------------------------------------------------------

    def _summarize(self) -> None:
        """In a child: it imports matplotlib. Its failure costs a warning."""
        command = [sys.executable, "-m", "llmtui.core.runs.summarize", str(self.directory.path)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SUMMARY_LIMIT, check=False
            )
            problem = done.stderr.strip().splitlines()[-1] if done.returncode and done.stderr.strip() else ""
            failed = done.returncode != 0
        except (OSError, subprocess.TimeoutExpired) as error:
            failed, problem = True, str(error)
        if failed:
            self._write(ev.WarningEvent(code="summary", text=f"the summary could not be written: {problem}"))


def main() -> int:
    """Entry of the supervisor's process."""
    os.umask(0o077)
    directory = RunDirectory(Path(sys.argv[1]))
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    try:
        lock = locks.take(directory.supervisor_lock)
    except LlmtuiError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    with lock:
        return Supervisor(directory).run()


if __name__ == "__main__":
    sys.exit(main())
