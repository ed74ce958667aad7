"""Hardware samples at 1 Hz: written when something changed, means of ten seconds after the first hour, peaks kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from llmtui.core.hardware.host import ProcessTree, sample_host
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.runs import events as ev
from llmtui.core.runs.clock import boot_seconds
from llmtui.core.runs.directory import RunDirectory

_FIRST_HOUR: Final = 3600.0
_LATER_EVERY: Final = 10
_RAM_GRAIN: Final = 16 << 20


class Sampler:
    """Samples the machine for one attempt."""

    def __init__(self, directory: RunDirectory, reader: NvmlReader, write: Callable[[ev.EventBase], None]) -> None:
        self._directory = directory
        self._reader = reader
        self._write = write
        self._began = boot_seconds()
        self._last: ev.Hardware | None = None
        self._bucket: list[ev.Hardware] = []
        self._peaks: dict[int, ev.HardwarePeak] = {}
        self._peak_rss = 0

    def sample(self, tree: ProcessTree | None, uuids: Sequence[str]) -> None:
        """Take one sample; cards of other runs are left out when this run has its own."""
        gpus, note = self._reader.sample(tree.pids() if tree else ())
        shown = [gpu for gpu in gpus if not uuids or gpu.uuid in uuids]
        host = sample_host(self._directory.path)
        cpu, rss = tree.usage() if tree else (None, None)
        now = ev.Hardware(
            gpus=shown, cpu_percent=round(host.cpu_percent), worker_cpu_percent=round(cpu) if cpu is not None else None,
            ram_used=host.ram_used // _RAM_GRAIN * _RAM_GRAIN, ram_total=host.ram_total, note=note,
            worker_rss=rss // _RAM_GRAIN * _RAM_GRAIN if rss is not None else None,
            disk_free=host.disk_free // _RAM_GRAIN * _RAM_GRAIN if host.disk_free is not None else None,
            disk_total=host.disk_total,
        )  # fmt: skip
        self._note_peaks(now)
        if boot_seconds() - self._began <= _FIRST_HOUR:
            self._put(now)
            return
        self._bucket.append(now)
        if len(self._bucket) >= _LATER_EVERY:
            self._put(_mean(self._bucket))
            self._bucket = []

    def _put(self, now: ev.Hardware) -> None:
        if now != self._last:
            self._last = now
            self._write(now)

    def _note_peaks(self, now: ev.Hardware) -> None:
        self._peak_rss = max(self._peak_rss, now.worker_rss or 0)
        for gpu in now.gpus:
            old = self._peaks.get(gpu.index)
            self._peaks[gpu.index] = ev.HardwarePeak(
                index=gpu.index, uuid=gpu.uuid, name=gpu.name, total=gpu.total,
                used=_larger(old.used if old else None, gpu.used),
                this_run=_larger(old.this_run if old else None, gpu.this_run),
            )  # fmt: skip

    def write_peaks(self) -> None:
        """The peaks of the attempt, at its end."""
        self._write(ev.HardwarePeaks(gpus=list(self._peaks.values()), worker_rss=self._peak_rss or None))


def _larger(a: int | None, b: int | None) -> int | None:
    known = [x for x in (a, b) if x is not None]
    return max(known) if known else None


def _mean(samples: Sequence[ev.Hardware]) -> ev.Hardware:
    """The last sample with its percentages as means."""
    last = samples[-1]
    cpu = [s.cpu_percent for s in samples if s.cpu_percent is not None]
    gpus = []
    for position, gpu in enumerate(last.gpus):
        use = [s.gpus[position].utilization_gpu for s in samples if position < len(s.gpus)]
        known = [u for u in use if u is not None]
        gpus.append(msgspec.structs.replace(gpu, utilization_gpu=round(sum(known) / len(known)) if known else None))
    return msgspec.structs.replace(last, gpus=gpus, cpu_percent=round(sum(cpu) / len(cpu)) if cpu else None)
