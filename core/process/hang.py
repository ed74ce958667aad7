"""A run that makes no step: noticed, its stacks kept, what can be seen from outside put into words."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from llmtui.core.files import write_atomically
from llmtui.core.runs.directory import RunDirectory

_DUMP_SIGNAL: Final = signal.SIGUSR1  # the worker has faulthandler answer it
_DUMP_LIMIT: Final = 3.0
_STATES: Final = {
    "T": "the worker is stopped by a signal (kill -CONT lets it go on)",
    "t": "the worker is held by a debugger",
    "D": "the worker is stuck in the kernel: a disk, mount or driver does not answer",
}


class HangWatch:
    """Counts the time without a sign of progress; the first step of an attempt may take as long as it likes.

    Any event of the worker is progress: an evaluation may last hours. The clock is the monotonic one, which stands
    still while the machine is suspended.

    Args:
        minutes: `limits.no_step_minutes`; None never finds a hang.
    """

    def __init__(self, minutes: float | None) -> None:
        self._limit = None if minutes is None else minutes * 60
        self._stepped = False
        self._since = time.monotonic()
        self._reported = False

    def progress(self, *, step: bool = False) -> None:
        """The worker has said something."""
        self._stepped = self._stepped or step
        self._since, self._reported = time.monotonic(), False

    def newly_hung(self) -> bool:
        """Whether there was no progress for longer than the preset allows; true once for each hang."""
        if self._limit is None or self._reported or not self._stepped:
            return False
        self._reported = time.monotonic() - self._since > self._limit
        return self._reported


def describe_hang(pid: int, directory: RunDirectory) -> str:
    """What can be seen of a worker that does nothing; its stacks go into `stacks-<time>.txt` if it can give them."""
    seen = _STATES.get(_process_state(pid), "")
    stacks = dump_stacks(pid, directory) if not seen else ""
    return seen or stacks or "its stacks can be read with py-spy, which is not installed"


def dump_stacks(pid: int, directory: RunDirectory) -> str:
    """Have the worker write its stacks, else read them with py-spy; the sentence that says where they are."""
    found = _ask_for_stacks(pid, directory.output) or _read_stacks(pid)
    if not found:
        return ""
    name = f"stacks-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    try:
        write_atomically(directory.path / name, found)
    except OSError as error:
        return f"its stacks could not be kept: {error.strerror}"
    return f"its stacks are in {name}"


def _ask_for_stacks(pid: int, output: Path) -> bytes:
    """Send the signal only to a process that catches it: the default action would end it."""
    if not _catches(pid, _DUMP_SIGNAL):
        return b""
    try:
        before = output.stat().st_size
        os.kill(pid, _DUMP_SIGNAL)
    except OSError:
        return b""
    end, size = time.monotonic() + _DUMP_LIMIT, before
    while time.monotonic() < end:
        time.sleep(0.2)
        now = output.stat().st_size
        if now > before and now == size:
            break
        size = now
    with output.open("rb") as file:
        file.seek(before)
        return file.read(1 << 20)


def _read_stacks(pid: int) -> bytes:
    tool = shutil.which("py-spy")
    if tool is None:
        return b""
    try:
        done = subprocess.run([tool, "dump", "--pid", str(pid)], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout + done.stderr


def _catches(pid: int, number: signal.Signals) -> bool:
    return bool(int(_status(pid).get("SigCgt", "0"), 16) >> (number - 1) & 1)


def _process_state(pid: int) -> str:
    """One letter as `ps` shows it; empty when there is no such process."""
    return _status(pid).get("State", "")[:1]


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
