"""One worker process: started by us or adopted, watched through a pidfd, its output bounded."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from llmtui.core.hardware.host import ProcessTree
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory

_KEEP_BYTES: Final = 20 << 20  # of output.log: half head, half tail


def worker_environment(uuids: Sequence[str], base: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: its cards by UUID in PCI order, set before torch is imported."""
    environment = dict(base)
    environment |= {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(uuids),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    environment.setdefault("TOKENIZERS_PARALLELISM", "true")
    return environment


class WorkerProcess:
    """A worker known by pid and start time; `returncode` only when it is our child."""

    def __init__(self, pid: int, child: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self._child = child
        self.tree = ProcessTree(pid)
        self._born = time.time()
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = -1

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        directory: RunDirectory,
        environment: Mapping[str, str],
        claims: Sequence[locks.Lock],
    ) -> WorkerProcess:
        """Start it in a session of its own: no terminal, no pipe, output appended to a file.

        The claims' descriptors are passed on, so that a card stays claimed when the supervisor is killed.
        """
        with directory.output.open("ab") as output:
            child = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/",
                start_new_session=True, env=dict(environment), pass_fds=[c.fileno() for c in claims], umask=0o077,
            )  # fmt: skip
        return cls(child.pid, child)

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

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the worker's whole process group (it leads its own); never a stranger with its pid."""
        if self._pidfd < 0 or self.wait(0):
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def end_group(self) -> None:
        """Kill what the ended worker left in its group (children of its own that outlived it)."""
        for process in psutil.process_iter(["create_time"]):
            try:
                if os.getpgid(process.pid) == self.pid and process.info["create_time"] >= self._born - 1:
                    process.kill()
            except (ProcessLookupError, PermissionError, psutil.Error):
                continue

    def close(self) -> None:
        """Close the pidfd."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def worker_command(directory: RunDirectory, attempt: int) -> list[str]:
    """The real worker; its argv carries the run's id."""
    return [sys.executable, "-m", "llmtui.core.worker", str(directory.path), str(attempt)]


def bound_output(path: Path, keep: int = _KEEP_BYTES) -> None:
    """Cut the middle out of an output file that has grown past twice `keep`.

    The worker appends (`O_APPEND`), so it goes on writing at the new end.
    """
    try:
        size = path.stat().st_size
        if size <= 2 * keep:
            return
        with path.open("r+b") as file:
            file.seek(size - keep // 2)
            tail = file.read()
            file.seek(keep // 2)
            file.write(b"\n[... output cut here ...]\n" + tail)
            file.truncate()
    except OSError:
        return
