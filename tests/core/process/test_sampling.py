"""Samples: only changes, means after an hour, peaks for certain, lost cards once; and is the memory back?"""

from __future__ import annotations

import os
from typing import Any

import pytest

from llmtui.core.hardware import nvml
from llmtui.core.hardware.host import HostSample, ProcessTree
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.process import sampling, vram
from llmtui.core.process.sampling import Sampler, mean_of
from llmtui.core.process.vram import VramBack
from llmtui.core.runs import events as ev
from tests.core.hardware.fake_nvml import GIB, FakeNvml
from tests.core.process.runs import new_run


class Watched:
    """A sampler on four fake cards, and what it wrote."""

    def __init__(self, fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = HostSample(50.0, 8 * GIB, 16 * GIB, 100 * GIB, 200 * GIB)
        monkeypatch.setattr(sampling, "sample_host", lambda _: self.host)
        monkeypatch.setattr(ProcessTree, "usage", lambda _: (100.0, 2 * GIB))
        self.written: list[Any] = []
        self.sampler = Sampler(new_run(), NvmlReader(fake), self.written.append)
        self.tree = ProcessTree(os.getpid())

    def sample(self, *uuids: str) -> None:
        self.sampler.sample(self.tree, uuids)


def test_what_did_not_change_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()
    watched = Watched(fake, monkeypatch)
    for _ in range(3):
        watched.sample("GPU-2")
    assert len(watched.written) == 1
    assert [gpu.uuid for gpu in watched.written[0].gpus] == ["GPU-2"]
    assert (watched.written[0].worker_cpu_percent, watched.written[0].worker_rss) == (100, 2 * GIB)
    fake.used[2] += GIB
    watched.sample("GPU-2")
    assert [sample.gpus[0].used // GIB for sample in watched.written] == [3, 4]


def test_after_an_hour_ten_samples_become_one_and_no_peak_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml()
    watched = Watched(fake, monkeypatch)
    began = sampling.boot_seconds()
    monkeypatch.setattr(sampling, "boot_seconds", lambda: began + 4000)
    for second in range(25):
        fake.used[0] = (9 if second == 13 else 2) * GIB
        watched.host = HostSample(float(second), 8 * GIB, 16 * GIB, None, None)
        watched.sample("GPU-0")
    watched.sampler.write_peaks()
    samples = [event for event in watched.written if isinstance(event, ev.Hardware)]
    assert [sample.cpu_percent for sample in samples] == [4, 14, 22]  # the last of an unfinished ten
    first, grown, peaks = (event for event in watched.written if isinstance(event, ev.HardwarePeaks))
    assert [p.gpus[0].used for p in (first, grown)] == [2 * GIB, 9 * GIB]
    assert [(peak.uuid, peak.used) for peak in peaks.gpus] == [("GPU-0", 9 * GIB)]
    assert peaks.worker_rss == 2 * GIB


def test_a_mean_is_one_of_what_varies_and_keeps_what_is_unknown() -> None:
    def sample(watts: float | None, reasons: list[str]) -> ev.Hardware:
        return ev.Hardware(gpus=[ev.HardwareGpu(index=0, uuid="a", power=watts, throttle_reasons=reasons)])

    mean = mean_of([sample(100.0, ["power cap"]), sample(None, []), sample(301.0, [])])
    assert (mean.gpus[0].power, mean.gpus[0].utilization_gpu, mean.cpu_percent) == (200, None, None)
    assert mean.gpus[0].throttle_reasons == ["power cap"]


def test_a_card_that_falls_off_the_bus_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(FakeNvml(lost=1), monkeypatch)
    said = []
    for _ in range(5):
        watched.sample()
        said.append(watched.sampler.newly_lost())
    assert said == [(), (), ("GPU 1 (NVIDIA RTX A6000)",), (), ()]
    assert watched.sampler.lost == ("GPU 1 (NVIDIA RTX A6000)",)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vram, "_LIMIT", 0.3)


def back_of(fake: FakeNvml, *, seen: bool) -> VramBack:
    """A run that held memory on card 1 and has ended."""
    reader = NvmlReader(fake)
    back = VramBack(reader, ["GPU-1"])
    fake.used[1] += 5 * GIB
    fake.held[1] = [(4242, 5 * GIB)] if seen else [(77, 5 * GIB)]
    back.note(ev.Hardware(gpus=reader.sample([4242], ["GPU-1"])[0]), [4242])
    return back


@pytest.mark.parametrize("seen", [True, False])
def test_memory_that_is_not_back_is_said(impatient: None, monkeypatch: pytest.MonkeyPatch, seen: bool) -> None:
    monkeypatch.setattr(nvml, "_pids_are_the_hosts", lambda: seen)
    fake = FakeNvml()
    back = back_of(fake, seen=seen)
    assert "its memory on GPU 1 is not back" in back.wait()
    fake.held[1], fake.used[1] = [], 2 * GIB
    assert back.wait() == ""


def test_on_the_cpu_nothing_is_waited_for() -> None:
    assert VramBack(NvmlReader(FakeNvml()), ()).wait() == ""
