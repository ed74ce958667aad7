"""Starting a supervisor that belongs to no terminal, and learning within moments whether it started.

It is detached twice: a session of its own, and no child of the terminal's process either. A pipe brings its first word:
ready (its lock is held), or why not.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from llmtui.core.errors import DataError, LlmtuiError, MachineError, RefusedError, UsageError
from llmtui.core.home import home
from llmtui.core.runs.directory import RunDirectory

MODULE: Final = "llmtui.core.process.supervise"
READY: Final = b"{}\n"
_START_LIMIT: Final = 30.0
_KINDS: Final = {kind.kind: kind for kind in (RefusedError, MachineError, DataError, UsageError)}


def spawn_supervisor(directory: RunDirectory, *, adopt: bool = False) -> None:
    """Start the supervisor and wait until it holds its lock.

    Args:
        adopt: it is for the worker that lives already; should that have ended meanwhile, only its end is told.

    Raises:
        RefusedError: another supervisor was first, or nothing is left to do.
        LlmtuiError: it does not start; its own sentence.
    """
    log = directory.path / "supervisor.log"
    reading, writing = os.pipe2(os.O_CLOEXEC)
    # -P: a file json.py or torch.py where the user stands must not stand in for the library.
    command = [sys.executable, "-P", "-m", MODULE, str(directory.path),
               "--ready", str(writing), "--from", _working_folder(), *(["--adopt"] if adopt else [])]  # fmt: skip
    try:
        try:
            with log.open("ab") as output:
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                    cwd=directory.path, umask=0o077, pass_fds=[writing], env=os.environ | {"LLMTUI_HOME": str(home())},
                )  # fmt: skip
        finally:
            os.close(writing)
        word = _first_word(reading)
        child.wait()  # the outer one has only forked
    except OSError as error:
        raise MachineError(f"the supervisor cannot be started: {error.strerror}", place=directory.id,
                           hint="free space and processes, then llmtui resume") from error  # fmt: skip
    finally:
        os.close(reading)
    if word != READY:
        raise _as_error(word, log)


def _first_word(descriptor: int) -> bytes:
    """What the supervisor says first, up to the end of its line; empty when it died or is silent for too long."""
    word, end = b"", time.monotonic() + _START_LIMIT
    while not word.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        block = os.read(descriptor, 1 << 16)
        if not block:
            break
        word += block
    return word


def say_error(descriptor: int, error: LlmtuiError) -> None:
    """The supervisor's side: why it does not start."""
    _say(descriptor, msgspec.json.encode(error.as_dict()) + b"\n")


def say_ready(descriptor: int) -> None:
    """The supervisor's side: its lock is held."""
    _say(descriptor, READY)


def _say(descriptor: int, word: bytes) -> None:
    with suppress(BrokenPipeError):  # the terminal has gone; the run goes on
        os.write(descriptor, word)
    os.close(descriptor)


def _as_error(word: bytes, log: Path) -> LlmtuiError:
    try:
        told: dict[str, Any] = msgspec.json.decode(word)
        kind = _KINDS.get(told["kind"], MachineError)
        return kind(told["message"], place=told["place"], hint=told["hint"])
    except (msgspec.DecodeError, KeyError, TypeError):
        lines = log.read_text("utf-8", "replace").strip().splitlines() if log.exists() else []
        last = lines[-1] if lines else f"no word from it in {_START_LIMIT:g} s"
        return MachineError(f"the supervisor did not start: {last}", place=str(log), hint="look into that file")


def _working_folder() -> str:
    """Where the user stands (for the git state); a folder that is gone becomes /."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
