"""Hardware samples at 1 Hz: written when something changed, means of ten seconds after the first hour, peaks kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from llmtui.core.hardware.host import ProcessTree, sample_host
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.runs import events as ev
from llmtui.core.runs.clock import boot_seconds
from llmtui.core.runs.directory import RunDirectory

_FIRST_HOUR: Final = 3600.0
_LATER_EVERY: Final = 10
_GRAIN: Final = 16 << 20  # smaller changes of host memory and disk are no news
_MEANS: Final = ("utilization_gpu", "utilization_memory", "clock_sm", "clock_memory", "power", "temperature")


class Sampler:
    """Samples the machine for one attempt."""

    def __init__(self, directory: RunDirectory, nvml: NvmlReader, write: Callable[[ev.EventBase], None]) -> None:
        self.last: ev.Hardware | None = None
        """The newest sample."""
        self.lost: tuple[str, ...] = ()
        """Cards that vanished, in words."""
        self.peak_rss = 0
        """The most host memory that the worker was seen with, bytes."""
        self._directory = directory
        self._nvml = nvml
        self._write = write
        self._began = boot_seconds()
        self._written: ev.Hardware | None = None
        self._bucket: list[ev.Hardware] = []
        self._peaks: dict[str, ev.HardwarePeak] = {}
        self._peaks_written: dict[str, ev.HardwarePeak] = {}
        self._lost_said = 0

    def sample(self, tree: ProcessTree, uuids: Sequence[str]) -> None:
        """Take one sample; cards of other runs are left out when this run has its own."""
        gpus, note = self._nvml.sample(tree.pids(), uuids)
        host = sample_host(self._directory.path)
        cpu, rss = tree.usage()
        now = ev.Hardware(
            gpus=gpus, cpu_percent=round(host.cpu_percent), worker_cpu_percent=round(cpu) if cpu is not None else None,
            ram_used=_grain(host.ram_used), ram_total=host.ram_total, note=note, worker_rss=_grain(rss),
            disk_free=_grain(host.disk_free), disk_total=host.disk_total,
        )  # fmt: skip
        self.last = now
        self._note_peaks(now, rss)
        if boot_seconds() - self._began <= _FIRST_HOUR:
            self._put(now)
            return
        self._bucket.append(now)
        if len(self._bucket) >= _LATER_EVERY:
            self._put(mean_of(self._bucket))
            self._bucket = []
            if self._peaks != self._peaks_written:  # a mean hides a peak
                self.write_peaks()

    def _put(self, now: ev.Hardware) -> None:
        if now != self._written:
            self._written = now
            self._write(now)

    def _note_peaks(self, now: ev.Hardware, rss: int | None) -> None:
        self.peak_rss = max(self.peak_rss, rss or 0)
        for gpu in now.gpus:
            if gpu.lost and (name := f"GPU {gpu.index} ({gpu.name})") not in self.lost:
                self.lost += (name,)
            old = self._peaks.get(gpu.uuid)
            self._peaks[gpu.uuid] = ev.HardwarePeak(
                index=gpu.index, uuid=gpu.uuid, name=gpu.name,
                total=_larger((old.total if old else None, gpu.total)),
                used=_larger((old.used if old else None, gpu.used)),
                this_run=_larger((old.this_run if old else None, gpu.this_run)),
            )  # fmt: skip

    def newly_lost(self) -> tuple[str, ...]:
        """Cards that vanished since the last call."""
        new, self._lost_said = self.lost[self._lost_said :], len(self.lost)
        return new

    def write_peaks(self) -> None:
        """The peaks of the attempt so far; always at its end."""
        if self._bucket:
            self._put(mean_of(self._bucket))
            self._bucket = []
        self._peaks_written = dict(self._peaks)
        self._write(ev.HardwarePeaks(gpus=list(self._peaks.values()), worker_rss=self.peak_rss or None))


def mean_of(samples: Sequence[ev.Hardware]) -> ev.Hardware:
    """One sample for several: means of what varies (percentages, clocks, watts, degrees), the last of the rest."""
    last, gpus = samples[-1], []
    for gpu in last.gpus:
        same = [other for sample in samples for other in sample.gpus if other.uuid == gpu.uuid]
        means = {name: _mean(getattr(other, name) for other in same) for name in _MEANS}
        reasons = sorted({reason for other in same for reason in other.throttle_reasons})
        gpus.append(msgspec.structs.replace(gpu, **means, throttle_reasons=reasons))
    return msgspec.structs.replace(
        last, gpus=gpus, cpu_percent=_mean(s.cpu_percent for s in samples),
        worker_cpu_percent=_mean(s.worker_cpu_percent for s in samples),
    )  # fmt: skip


def _mean(values: Iterable[float | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known else None


def _larger(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _grain(size: int | None) -> int | None:
    return None if size is None else size // _GRAIN * _GRAIN
