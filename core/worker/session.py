"""One attempt's link to the outside: events out, requests in, signals; and how it may be asked to end."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter


class StopRequested(Exception):
    """A stop was asked for where there is nothing to save yet."""


class Session:
    """Writes events and answers requests of one attempt."""

    def __init__(self, directory: RunDirectory, attempt: int) -> None:
        import os

        self.directory = directory
        self.attempt = attempt
        self._writer = EventWriter(directory.events)
        self._phase: tuple[str, int, int | None] | None = None
        self._phase_written = 0.0
        self._requests_seen = -1
        self._terminated = False
        self.write(ev.WorkerStart(boot_id=boot_id(), attempt=attempt, pid=os.getpid()))

    def listen(self) -> None:
        """Ignore hang-ups and keyboard interrupts, which belong to terminals; SIGTERM is a stop request."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        self._terminated = True

    # --- out -------------------------------------------------------------------------------------

    def write(self, event: ev.EventBase) -> None:
        """Append an event; a full disk costs the event, not the run."""
        try:
            self._writer.write(event)
        except OSError as error:
            print(f"an event could not be written: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def fsync(self) -> None:
        """Make the events survive a power loss."""
        try:
            self._writer.fsync()
        except OSError as error:
            print(f"events could not be synced: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def close(self) -> None:
        """Sync and close the event file."""
        try:
            self._writer.close()
        except OSError as error:
            print(f"events could not be synced: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def warn(self, code: str, text: str) -> None:
        """Something the user should know."""
        print(f"warning: {text}", file=sys.stderr, flush=True)  # noqa: T201
        self.write(ev.WarningEvent(code=code, text=text))

    def phase(self, name: ev.Phase, done: int = 0, total: int | None = None, text: str = "") -> None:
        """Say what is done now; progress within a phase at most four times a second."""
        now, new = time.monotonic(), self._phase is None or self._phase[0] != name
        finished = total is not None and done >= total
        if new or finished or now - self._phase_written >= 0.25:
            self._phase, self._phase_written = (name, done, total), now
            self.write(ev.PhaseEvent(name=name, done=done, total=total, text=text))

    # --- in --------------------------------------------------------------------------------------

    def pending(self) -> list[requests.Request]:
        """Requests for this attempt; almost free when there are none (one stat)."""
        if self._terminated:
            self._terminated = False
            return [requests.Request(request="stop", attempt=self.attempt, id="SIGTERM")]
        try:
            changed = self.directory.requests.stat().st_mtime_ns
        except OSError:
            return []
        if changed == self._requests_seen:
            return []
        found = requests.pending(self.directory, self.attempt)
        if not found:
            self._requests_seen = changed
        return [request for request in found if request.request != "kill"]

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
        for request in self.pending():
            if request.request == "checkpoint":
                self.answer(request, False, "there is nothing to save yet")
            else:
                self.answer(request, True, "stopped before the first step")
                raise StopRequested
