"""Cards through a fake NVML: each value alone, lost cards, trouble in words; torch judged against driver and card."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from llmtui.core.hardware.fit import TorchBuild, judge, torch_build
from llmtui.core.hardware.host import ProcessTree, sample_host
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.home import home


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


class FakeNvml:
    """Four unequal cards. `broken` names functions that this hardware lacks; `lost_after` loses card 1 at that poll."""

    NVMLError = NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_LIB_RM_VERSION_MISMATCH = 12, 18
    NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_NO_PERMISSION, NVML_ERROR_GPU_IS_LOST = 9, 4, 15
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    nvmlClocksEventReasonSwPowerCap = 4

    def __init__(self, broken: tuple[str, ...] = (), lost_after: int | None = None, init: int | None = None) -> None:
        self.broken, self.lost_after, self.init_error, self.polls = broken, lost_after, init, 0

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in object.__getattribute__(self, "broken"):

            def missing(*_: Any) -> Any:
                raise NVMLError(3)

            return missing
        return object.__getattribute__(self, name)

    def nvmlInit(self) -> None:
        if self.init_error is not None:
            raise NVMLError(self.init_error)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95"

    def nvmlDeviceGetCount(self) -> int:
        return 4

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return ("RTX 3090", "A6000", "H200 [x]", "T4")[handle].encode()

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        if handle == 1:
            self.polls += 1
            if self.lost_after is not None and self.polls >= self.lost_after:
                raise NVMLError(self.NVML_ERROR_GPU_IS_LOST)
        return SimpleNamespace(used=(handle + 1) << 30, total=24 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        return [SimpleNamespace(pid=100 + handle, usedGpuMemory=1 << 30), SimpleNamespace(pid=7, usedGpuMemory=None)]

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=90 + handle, memory=40)

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return 1000 * kind

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 250_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:
        return 60

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return 4 if handle == 0 else 1

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return ((8, 6), (8, 6), (9, 0), (7, 5))[handle]


def test_every_value_of_every_card_is_read() -> None:
    gpus, note = NvmlReader(FakeNvml()).sample([102])
    assert note == ""
    assert [(g.name, g.used, g.utilization_gpu) for g in gpus][2] == ("H200 [x]", 3 << 30, 92)
    assert gpus[0].throttle_reasons == ["power cap"]
    assert gpus[1].throttle_reasons == []
    assert gpus[0].power == 250.5
    assert (gpus[2].this_run, gpus[2].others) == (1 << 30, 2 << 30)


def test_a_value_that_is_not_supported_takes_nothing_else_with_it() -> None:
    names = [
        n
        for n in dir(FakeNvml)
        if n.startswith("nvmlDeviceGet")
        and n not in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName", "nvmlDeviceGetUUID")
    ]
    for name in names:
        gpus, _ = NvmlReader(FakeNvml(broken=(name,))).sample([])
        assert len(gpus) == 4
        assert not any(g.lost for g in gpus)
        if name != "nvmlDeviceGetMemoryInfo":
            assert gpus[3].used == 4 << 30


def test_a_lost_card_is_marked_and_the_others_go_on() -> None:
    reader = NvmlReader(FakeNvml(lost_after=3))
    assert not reader.sample([])[0][1].lost
    assert not reader.sample([])[0][1].lost
    gpus, _ = reader.sample([])
    assert [g.lost for g in gpus] == [False, True, False, False]
    assert gpus[2].used == 3 << 30


def test_in_a_container_our_own_share_is_unknown_rather_than_wrong() -> None:
    gpus, _ = NvmlReader(FakeNvml()).sample([999_999])
    assert gpus[0].this_run is None
    assert gpus[0].used == 1 << 30


@pytest.mark.parametrize(
    ("code", "words"),
    [(12, "no NVIDIA driver"), (18, "reboot"), (9, "not loaded"), (4, "permission"), (99, "does not answer")],
)
def test_trouble_is_a_sentence_with_a_cure(code: int, words: str) -> None:
    reader = NvmlReader(FakeNvml(init=code))
    assert reader.sample([]) == ([], reader.note)
    assert words in reader.note


NEW, OLD = TorchBuild("2.13.0", (13, 0)), TorchBuild("2.13.0", (12, 6))


@pytest.mark.parametrize(
    ("build", "driver", "cards", "words"),
    [
        (NEW, "580.95", [("H200", (9, 0))], ""),
        (NEW, "580.95", [("V100", (7, 0))], "--torch-backend=cu126"),
        (NEW, "580.95", [("H200", (9, 0)), ("V100", (7, 0))], "V100"),
        (NEW, "550.1", [("A100", (8, 0))], "--torch-backend=cu126"),
        (NEW, "470.199", [("RTX 2080", (7, 5))], "install driver 580"),
        (OLD, "560.1", [("V100", (7, 0))], ""),
        (OLD, "470.1", [("V100", (7, 0))], "install driver 525"),
        (OLD, "580.1", [("B200", (10, 0))], "no kernels for B200"),
        (TorchBuild("2.13.0+cpu", None), "580.1", [("T4", (7, 5))], "built for the CPU"),
        (TorchBuild("2.13.0+cpu", None), None, [], ""),
        (None, "580.1", [("T4", (7, 5))], "not installed"),
    ],
)
def test_torch_is_judged_against_driver_and_card(
    build: TorchBuild | None, driver: str | None, cards: list[Any], words: str
) -> None:
    sentence = judge(build, driver, cards)
    assert (words in sentence) if words else sentence == ""


def test_the_installed_torch_is_described_without_importing_it() -> None:
    import subprocess
    import sys

    script = "import sys; from llmtui.core.hardware.fit import torch_build; b = torch_build(); assert b and b.version; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    build = torch_build()
    assert build is not None
    assert build.version.startswith("2.")


def test_the_host_is_read_and_a_process_known_by_more_than_its_pid() -> None:
    host = sample_host(home())
    assert 0 < host.ram_used < host.ram_total
    assert host.disk_free
    tree = ProcessTree(psutil.Process().pid)
    assert tree.alive
    assert tree.usage()[1]
    assert not ProcessTree(2**22 - 3).alive
