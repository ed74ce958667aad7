"""The host: CPU, memory, disk, and one run's own processes."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_TREE_SECONDS: Final = 10.0  # listing children walks all of /proc


@dataclass(frozen=True, slots=True)
class HostSample:
    """Percent of all cores, bytes."""

    cpu_percent: float
    ram_used: int
    ram_total: int
    disk_free: int | None
    disk_total: int | None


def sample_host(disk: Path) -> HostSample:
    """The host now; CPU percent since the last call in this process."""
    memory = psutil.virtual_memory()
    try:
        usage = shutil.disk_usage(disk)
        free, total = usage.free, usage.total
    except OSError:
        free, total = None, None
    return HostSample(psutil.cpu_percent(), memory.total - memory.available, memory.total, free, total)


def disk_free(folder: Path) -> int | None:
    """Bytes that are free where a folder is; None when that cannot be asked."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def ram_total() -> int:
    """The machine's memory, bytes."""
    return int(psutil.virtual_memory().total)


class ProcessTree:
    """A process and its children, known by pid and start time so that a reused pid is never taken for it."""

    def __init__(self, pid: int) -> None:
        self._children: list[psutil.Process] = []
        self._listed = 0.0
        try:
            self._process: psutil.Process | None = psutil.Process(pid)
            self._process.cpu_percent()
        except psutil.Error:
            self._process = None

    @property
    def alive(self) -> bool:
        """Whether it runs; a zombie does not."""
        process = self._process
        try:
            return process is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def pids(self) -> list[int]:
        """Its own and its children's pids (children are listed anew every ten seconds)."""
        if not self.alive or self._process is None:
            return []
        now = time.monotonic()
        if not self._listed or now - self._listed > _TREE_SECONDS:
            self._listed = now
            try:
                self._children = self._process.children(recursive=True)
            except psutil.Error:
                self._children = []
        return [self._process.pid, *(child.pid for child in self._children if child.is_running())]

    def usage(self) -> tuple[float | None, int | None]:
        """CPU percent of one core since the last call, and resident bytes; of the process itself."""
        if not self.alive or self._process is None:
            return None, None
        try:
            with self._process.oneshot():
                return self._process.cpu_percent(), int(self._process.memory_info().rss)
        except psutil.Error:
            return None, None
