"""One attempt's link to the outside: events out, requests in, signals; and how it may be asked to end."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import threading
import time
from types import FrameType

from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter
from llmtui.core.worker.saying import line, say

_WATCH_SECONDS = 0.3
_PHASE_SECONDS = 0.25
_BEFORE = "stopped before the first step"


class StopRequested(Exception):
    """A stop was asked for where there is nothing to save yet."""


class Session:
    """Writes events and answers requests of one attempt. Its methods may be called from any thread."""

    def __init__(self, directory: RunDirectory, attempt: int) -> None:
        self.directory = directory
        self.attempt = attempt
        self.step = 0
        """The step the attempt has reached, for its last line."""
        self._writer = EventWriter(directory.events)
        self._lock = threading.RLock()
        self._lost, self._lost_why = 0, ""
        self._phase: tuple[str, str] | None = None
        self._phase_written = 0.0
        self._requests_seen = -1
        self._terminated = False
        self.something_to_save = False
        """Whether a stop means a checkpoint; before the first step there is nothing to keep."""
        self.write(ev.WorkerStart(boot_id=boot_id(), attempt=attempt, pid=os.getpid()))

    def listen(self) -> None:
        """Ignore hang-ups and keyboard interrupts, which belong to terminals; SIGTERM is a stop request.

        A thread watches while there is nothing to save: loading libraries, downloads and weights can take minutes
        inside one call, and a stop ends them at once.
        """
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        faulthandler.register(signal.SIGUSR1, all_threads=True)  # a supervisor that finds it hung asks for its stacks
        awake, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(awake,), name="stop-watch", daemon=True).start()

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        self._terminated = True

    def _watch(self, awake: int) -> None:
        while not self.something_to_save:
            if select.select([awake], [], [], _WATCH_SECONDS)[0] and signal.SIGTERM in os.read(awake, 512):
                self._terminated = True
            with self._lock:
                if self.something_to_save:
                    return
                try:
                    self.check_stop()
                except StopRequested:
                    self.write(ev.Exit(outcome="stopped", step=self.step, cause=_BEFORE))
                    self.close()
                    os._exit(4)  # the main thread may be deep inside a library

    def now_to_save(self) -> None:
        """From here on a stop is obeyed at the end of a step, with a checkpoint."""
        with self._lock:
            self.something_to_save = True

    # --- out -------------------------------------------------------------------------------------

    def write(self, event: ev.EventBase) -> None:
        """Append an event, and say it in output.log; a full disk costs the event, not the run."""
        lost = 0
        try:
            with self._lock:
                self._writer.write(event)
                lost, self._lost = self._lost, 0
        except OSError as error:
            self._lost, self._lost_why = self._lost + 1, error.strerror or str(error)
            say(f"an event could not be written: {error}")
        text = line(event)
        if text is not None:
            say(text)
        if lost:
            self.warn("events", f"the record has a gap: {lost} events could not be written ({self._lost_why}); nothing "
                                "of the training is lost, but the curve and the speeds lack them")  # fmt: skip

    def fsync(self) -> None:
        """Make the events survive a power loss."""
        try:
            self._writer.fsync()
        except OSError as error:
            say(f"events could not be synced: {error}")

    def close(self) -> None:
        """Sync and close the event file."""
        try:
            with self._lock:
                self._writer.close()
        except OSError as error:
            say(f"events could not be synced: {error}")

    def warn(self, code: str, text: str) -> None:
        """Something the user should know."""
        self.write(ev.WarningEvent(code=code, text=text))

    def phase(self, name: ev.Phase, done: int = 0, total: int | None = None, text: str = "") -> None:
        """Say what is done now; progress within a phase at most four times a second."""
        now, new = time.monotonic(), self._phase != (name, text)
        finished = total is not None and done >= total
        if new or finished or now - self._phase_written >= _PHASE_SECONDS:
            self._phase, self._phase_written = (name, text), now
            self.write(ev.PhaseEvent(name=name, done=done, total=total, text=text))

    # --- in --------------------------------------------------------------------------------------

    def pending(self) -> list[requests.Request]:
        """Requests for this attempt; almost free when there are none (one stat)."""
        found = []
        if self._terminated:
            self._terminated = False
            found.append(requests.Request(request="stop", attempt=self.attempt, id="SIGTERM"))
        try:
            changed = self.directory.requests.stat().st_mtime_ns
        except OSError:
            return found
        if changed != self._requests_seen:
            there = requests.pending(self.directory, self.attempt)
            if not there:
                self._requests_seen = changed
            found += [request for request in there if request.request != "kill"]
        return found

    def answer(self, request: requests.Request, accepted: bool, text: str = "") -> None:
        """Answer a request and take it away."""
        self.write(ev.Answer(request=request.request, request_id=request.id, accepted=accepted, text=text))
        if request.id != "SIGTERM":
            requests.remove(self.directory, request)

    def check_stop(self) -> None:
        """Where nothing can be saved yet: a stop ends the attempt, a checkpoint is refused.

        Raises:
            StopRequested: a stop was asked for.
        """
        with self._lock:
            for request in self.pending():
                if request.request == "checkpoint":
                    self.answer(request, False, "there is nothing to save yet")
                else:
                    self.answer(request, True, _BEFORE)
                    raise StopRequested

    def answer_too_late(self) -> None:
        """The run has ended: requests that came in meanwhile are answered, not left lying."""
        for request in self.pending():
            self.answer(request, False, "the run had just ended")
