"""Asking a run to end or to save, and waiting for what comes of it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final, Literal

from llmtui.core.errors import LlmtuiError, RefusedError
from llmtui.core.process.spawning import spawn_supervisor
from llmtui.core.runs import requests
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.events import Answer, RequestKind
from llmtui.core.runs.reader import RunReader, liveness
from llmtui.core.runs.state import RunState

How = Literal["checkpoint", "now", "kill"]
_KINDS: Final[dict[How, RequestKind]] = {"checkpoint": "stop", "now": "stop_now", "kill": "kill"}


def stop(directory: RunDirectory, how: How = "checkpoint") -> requests.Request:
    """Ask the run to end: after this step with a checkpoint, now without one, or killed.

    Raises:
        RefusedError: nothing of the run lives.
    """
    return _ask(directory, _KINDS[how])


def checkpoint(directory: RunDirectory) -> requests.Request:
    """Ask for a checkpoint at the next step's end.

    Raises:
        RefusedError: nothing of the run lives.
    """
    return _ask(directory, "checkpoint")


def _ask(directory: RunDirectory, kind: RequestKind) -> requests.Request:
    alive = liveness(directory)
    if not alive.any:
        raise RefusedError(f"{directory.id} is not running", place=directory.id, hint="llmtui ls shows the states")
    if not alive.supervisor:  # the worker obeys by itself, but only a supervisor kills
        with suppress(LlmtuiError):
            spawn_supervisor(directory, adopt=True)
    return requests.send(directory, kind, directory.last_attempt())


def wait_until_ended(directory: RunDirectory, timeout: float | None = None) -> RunState:
    """Wait until every process of the run is gone; the state then (or at the timeout)."""
    reader = RunReader(directory)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        state = reader.poll()
        if not state.alive or (end is not None and time.monotonic() > end):
            return state
        time.sleep(0.1)


def wait_for_answer(directory: RunDirectory, request: requests.Request, timeout: float | None = None) -> Answer | None:
    """The run's answer to a request; None when it ended or the time ran out without one."""
    reader = RunReader(directory)
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        state = reader.poll()
        for answer in reversed(state.answers):
            if answer.request_id == request.id:
                return answer
        if not state.alive or (end is not None and time.monotonic() > end):
            return None
        time.sleep(0.1)
