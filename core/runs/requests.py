"""Requests from terminals to a run: small files in `requests/`, obeyed by the worker, answered by an event.

A request is addressed to an attempt, so that nothing stale is replayed by the next one.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from llmtui.core.errors import MachineError
from llmtui.core.files import write_atomically
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.events import RequestKind


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `id` is the file's name without its ending."""

    request: RequestKind
    attempt: int
    id: str = ""
    asked: float = 0.0


def send(directory: RunDirectory, kind: RequestKind, attempt: int) -> Request:
    """Put a request into the run directory (temporary name, then rename).

    Raises:
        MachineError: it cannot be written.
    """
    stamp = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    request = Request(request=kind, attempt=attempt, id=f"{stamp}-{os.getpid()}", asked=time.time())
    try:
        directory.requests.mkdir(mode=0o700, exist_ok=True)
        write_atomically(directory.requests / f"{request.id}.json", msgspec.json.encode(request))
    except OSError as error:
        raise MachineError(
            f"the request cannot be written, so the run goes on: {error.strerror}",
            place=directory.id, hint=f"free some space on the disk of {directory.path} and ask again",
        ) from error  # fmt: skip
    return request


def pending(directory: RunDirectory, attempt: int) -> list[Request]:
    """Requests addressed to this attempt, oldest first; damaged ones are passed over."""
    found: list[Request] = []
    try:
        names = sorted(e.name for e in os.scandir(directory.requests) if e.name.endswith(".json"))
    except FileNotFoundError:
        return found
    for name in names:
        if name.startswith("."):
            continue
        try:
            request = msgspec.json.decode((directory.requests / name).read_bytes(), type=Request)
        except (OSError, msgspec.DecodeError):
            continue
        if request.attempt == attempt:
            found.append(request)
    return found


def remove(directory: RunDirectory, request: Request) -> None:
    """Take an answered request away."""
    Path(directory.requests / f"{request.id}.json").unlink(missing_ok=True)


def clear(directory: RunDirectory) -> None:
    """Remove all requests, at the start of an attempt: they were for an earlier one."""
    for path in directory.requests.glob("*.json"):
        path.unlink(missing_ok=True)
