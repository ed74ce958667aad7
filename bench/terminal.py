"""A program in a pseudo-terminal: when it first paints a text, what it writes, what it costs."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl
from typing import Self

import psutil


class Terminal:
    """One program in a pty of its own."""

    def __init__(
        self, command: list[str], *, rows: int = 24, columns: int = 80, env: dict[str, str] | None = None
    ) -> None:
        self.begin = time.perf_counter()
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "", **(env or {})}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=environment
        )
        os.close(slave)
        self.output = b""

    def read_for(self, seconds: float) -> int:
        """Read what comes within this time; the number of bytes."""
        end, before = time.perf_counter() + seconds, len(self.output)
        while (left := end - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    self.output += os.read(self._master, 1 << 16)
                except OSError:
                    break
        return len(self.output) - before

    def wait_for(self, text: str, limit: float = 20.0) -> float:
        """Seconds from the start until this text has been written."""
        wanted = text.encode()
        while wanted not in self.output:
            if time.perf_counter() - self.begin > limit:
                raise TimeoutError(f"{text!r} was not painted; got {self.output[-400:]!r}")
            self.read_for(0.005)
        return time.perf_counter() - self.begin

    def cpu_seconds(self) -> float:
        """User and system seconds of the process so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def rss(self) -> int:
        """Resident bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)
