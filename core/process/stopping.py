"""Stops that the worker does not obey in time: asked again by signal, then killed, and said so.

The worker obeys stop, stop now and checkpoint by itself; only `kill` is the supervisor's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import psutil

from llmtui.core.files import write_atomically
from llmtui.core.runs import requests
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.requests import Request

Step = Literal["terminate", "kill"]
WORDS: Final = {"stop": "after this step, with a checkpoint", "stop_now": "now, without a checkpoint", "kill": "killed"}


@dataclass(frozen=True, slots=True)
class StopLimits:
    """Seconds. A stop with a checkpoint counts silence (a large model takes its time to save), a stop now all time."""

    now_terminate: float = 15.0
    now_kill: float = 30.0
    silent_terminate: float = 120.0
    silent_kill: float = 300.0


class LifeSigns:
    """When the worker last did something that a hung one does not: said something, or wrote to a disk."""

    def __init__(self, pid: int) -> None:
        self._since = time.monotonic()
        self._written = -1
        try:
            self._process: psutil.Process | None = psutil.Process(pid)
        except psutil.Error:
            self._process = None

    def spoke(self) -> None:
        """It wrote an event."""
        self._since = time.monotonic()

    def quiet_seconds(self) -> float:
        """How long there was no sign."""
        try:
            written = self._process.io_counters().write_bytes if self._process else self._written
        except psutil.Error:
            written = self._written
        if written != self._written:
            self._written, self._since = written, time.monotonic()
        return time.monotonic() - self._since


@dataclass
class Escalation:
    """One stop request on its way from a word to a kill."""

    request: Request
    limits: StopLimits
    seen: float = field(default_factory=time.monotonic)
    terminated: bool = False

    def due(self, quiet_seconds: float) -> Step | None:
        """What is due now.

        Args:
            quiet_seconds: how long the worker has given no sign of life.
        """
        waited = time.monotonic() - self.seen
        if self.request.request == "stop":
            waited = min(waited, quiet_seconds)
            terminate, kill = self.limits.silent_terminate, self.limits.silent_kill
        else:
            terminate, kill = self.limits.now_terminate, self.limits.now_kill
        if waited > kill:
            return "kill"
        if waited > terminate and not self.terminated:
            self.terminated = True
            return "terminate"
        return None

    def sentence(self) -> str:
        """Why it was killed."""
        if self.request.request == "stop":
            return (
                f"killed: no sign of life from the worker for {self.limits.silent_kill:g} s after it was asked to stop"
            )
        return f"killed: the worker did not stop within {self.limits.now_kill:g} s"


def requests_for(directory: RunDirectory, attempt: int) -> list[Request]:
    """Requests for this attempt; those sent to the one before, while this one was starting, are sent on.

    Nothing stale is among them: a supervisor removes what was asked before it lived.
    """
    if not any(directory.requests.glob("*.json")):
        return []
    for earlier in range(attempt):
        for request in requests.pending(directory, earlier):
            moved = msgspec.structs.replace(request, attempt=attempt)
            write_atomically(directory.requests / f"{request.id}.json", msgspec.json.encode(moved))
    return requests.pending(directory, attempt)
