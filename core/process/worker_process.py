"""One worker process: started by us or adopted, watched through a pidfd, ended with everything it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.hardware.host import ProcessTree
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory

_MARK: Final = "LLMTUI_RUN"  # in the environment of the worker and of all that it starts
GONE: Final = 0  # the pid of a worker that has ended, whose number may be somebody else's by now
_LOCK_LIMIT: Final = 10.0
_KEEP_BYTES: Final = 20 << 20  # of output.log: half head, half tail
_CUT: Final = b"\n[... output cut here ...]\n"


def worker_environment(directory: RunDirectory, uuids: Sequence[str], base: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: its cards by UUID in PCI order, set before torch is imported."""
    environment = dict(base)
    environment |= {
        _MARK: str(directory.path),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(uuids),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    environment.setdefault("TOKENIZERS_PARALLELISM", "true")
    return environment


def worker_command(directory: RunDirectory, attempt: int) -> list[str]:
    """The real worker; its argv carries the run's id. -P: nothing in its working folder stands in for a library."""
    return [sys.executable, "-P", "-m", "llmtui.core.worker", str(directory.path), str(attempt)]


class WorkerProcess:
    """A worker held by a pidfd, so that a signal never reaches a stranger; `returncode` only when it is our child."""

    def __init__(self, pid: int, directory: RunDirectory, child: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self.directory = directory
        self.tree = ProcessTree(pid)
        self._child = child
        try:
            self._pidfd = os.pidfd_open(pid) if pid != GONE else -1
        except ProcessLookupError:
            self._pidfd = -1

    @classmethod
    def start(
        cls, command: Sequence[str], directory: RunDirectory, environment: Mapping[str, str],
        claims: Sequence[locks.Lock] = (),
    ) -> WorkerProcess:  # fmt: skip
        """Start it in a session of its own: no terminal, no pipe, output appended to a file.

        It inherits `worker.lock`, so that it counts as alive before it can take the lock itself, and the claims, so
        that a card stays claimed when the supervisor is killed.

        Raises:
            MachineError: a process of an earlier attempt still lives, or it cannot be started.
        """
        _wait_until_free(directory)
        with locks.take(directory.worker_lock, "shared") as held, directory.output.open("ab") as output:
            try:
                child = subprocess.Popen(
                    list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    cwd=directory.path, start_new_session=True, env=dict(environment), umask=0o077,
                    pass_fds=[held.fileno(), *(claim.fileno() for claim in claims)],
                )  # fmt: skip
            except OSError as error:
                raise MachineError(
                    f"the worker cannot be started: {error.strerror}", place=str(command[0]),
                    hint="was the environment moved or upgraded? llmtui resume goes on",
                ) from error  # fmt: skip
        return cls(child.pid, directory, child)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, waiting at most so long."""
        if self._pidfd < 0:
            return True
        ready = select.select([self._pidfd], [], [], seconds)[0]
        if ready and self._child is not None:
            self._child.wait()
        return bool(ready)

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None for an adopted worker."""
        return self._child.returncode if self._child is not None else None

    def terminate(self) -> None:
        """SIGTERM to the worker alone: it saves and ends; its helpers end with it."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the worker and everything that it started."""
        for process in [*self._members(), *self.leftovers()]:
            try:
                process.kill()
            except psutil.Error:
                continue

    def _members(self) -> list[psutil.Process]:
        try:
            return [psutil.Process(self.pid)] if not self.wait(0) else []
        except psutil.Error:
            return []

    def leftovers(self) -> list[psutil.Process]:
        """Living processes that this run's worker started, other than itself, in whatever session: known by a mark in
        their environment."""
        mark = f"{_MARK}={self.directory.path}".encode()
        found = []
        for process in psutil.process_iter():
            if process.pid in (self.pid, os.getpid()):
                continue
            try:
                if mark in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                    found.append(process)
            except OSError:
                continue  # another user's, or gone
        return found

    def end_everything(self, seconds: float = 10.0) -> list[int]:
        """Kill what the ended worker left behind and wait for it; the pids that do not die (stuck in the kernel)."""
        end = time.monotonic() + seconds
        while left := self.leftovers():
            for process in left:
                try:
                    process.kill()
                except psutil.Error:
                    continue
            _, alive = psutil.wait_procs(left, timeout=min(1.0, max(0.0, end - time.monotonic())))
            if time.monotonic() > end:
                return [process.pid for process in alive]
        return []

    def close(self) -> None:
        """Close the pidfd."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _wait_until_free(directory: RunDirectory) -> None:
    end = time.monotonic() + _LOCK_LIMIT
    while True:
        try:
            locks.take(directory.worker_lock).release()
        except RefusedError:
            if time.monotonic() > end:
                raise MachineError(
                    "a process of an earlier attempt still lives", place=directory.id,
                    hint=f"find it: pgrep -f {directory.id}; if it is stuck in the kernel, reboot",
                ) from None  # fmt: skip
            time.sleep(0.1)
        else:
            return


def bound_output(path: Path, keep: int = _KEEP_BYTES) -> None:
    """Cut the middle out of an output file that has grown past twice `keep`; half its head and half its tail stay.

    The worker appends (`O_APPEND`), so it goes on writing at the new end.
    """
    try:
        size = path.stat().st_size
        if size <= 2 * keep:
            return
        with path.open("r+b") as reading, path.open("r+b") as writing:
            reading.seek(size - keep // 2)
            writing.seek(keep // 2)
            writing.write(_CUT)
            while block := reading.read(1 << 16):  # to the end, which the worker may move on meanwhile
                writing.write(block)
            writing.truncate()
    except OSError:
        return
