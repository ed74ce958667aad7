"""The NVIDIA cards through NVML: one handle held open, each value read alone, trouble in plain sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import pynvml

from llmtui.core.runs.events import HardwareGpu

Value = TypeVar("Value")

# Names of NVML's clock event (throttle) reasons; idle and plain application clocks are no trouble.
_THROTTLE: Final = (
    ("SwPowerCap", "power cap"), ("HwSlowdown", "hardware slowdown"), ("SwThermalSlowdown", "thermal (software)"),
    ("HwThermalSlowdown", "thermal (hardware)"), ("HwPowerBrakeSlowdown", "power brake"),
)  # fmt: skip


class NvmlReader:
    """Reads all cards; `note` says in a sentence why there are none, or what is wrong.

    Args:
        library: the `pynvml` module; tests put one with other cards in its place.
    """

    def __init__(self, library: Any = pynvml) -> None:
        self._nvml = library
        self._handles: list[tuple[int, str, str, Any]] = []
        self.note = ""
        self.driver: str | None = None
        self._open()

    def _open(self) -> None:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
            self.driver = _text(nvml.nvmlSystemGetDriverVersion())
            for index in range(nvml.nvmlDeviceGetCount()):
                try:
                    handle = nvml.nvmlDeviceGetHandleByIndex(index)
                    name, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
                except nvml.NVMLError as error:
                    self.note = f"card {index} cannot be read: {_words(nvml, error)}"
                    continue
                self._handles.append((index, uuid, name, handle))
        except nvml.NVMLError as error:
            self.note = _sentence(nvml, error)

    def sample(self, pids: Iterable[int]) -> tuple[list[HardwareGpu], str]:
        """Every card now, and a note.

        Args:
            pids: processes of this run; their memory is told apart from others'.
        """
        own = set(pids)
        return [self._card(index, uuid, name, handle, own) for index, uuid, name, handle in self._handles], self.note

    def _card(self, index: int, uuid: str, name: str, handle: Any, own: set[int]) -> HardwareGpu:
        nvml = self._nvml
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            used, total = int(memory.used), int(memory.total)
        except nvml.NVMLError as error:
            if _is(nvml, error, "NVML_ERROR_GPU_IS_LOST"):
                return HardwareGpu(index=index, uuid=uuid, name=name, lost=True)
            used, total = None, None  # unified memory (GB10): the host's numbers hold
        mine, others = self._shares(handle, own, used)
        use = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        return HardwareGpu(
            index=index, uuid=uuid, name=name, used=used, total=total, this_run=mine, others=others,
            utilization_gpu=int(use.gpu) if use else None, utilization_memory=int(use.memory) if use else None,
            clock_sm=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            clock_memory=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            throttle_reasons=self._throttling(handle), power=_watts(self._ask(nvml.nvmlDeviceGetPowerUsage, handle)),
            power_limit=_watts(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
            temperature=self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        )  # fmt: skip

    def _shares(self, handle: Any, own: set[int], used: int | None) -> tuple[int | None, int | None]:
        """Bytes of this run's processes and of everybody else (other processes and the driver).

        In a container NVML gives the host's process ids, so a run may not find itself: then its share is unknown.
        """
        processes = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        if processes is None:
            return None, None
        known = {int(p.pid): int(p.usedGpuMemory) for p in processes if p.usedGpuMemory is not None}
        mine = sum(size for pid, size in known.items() if pid in own)
        if own and not any(pid in own for pid in known):
            return (None, None) if known else (0, used)
        return mine, max(0, used - mine) if used is not None else None

    def _throttling(self, handle: Any) -> list[str]:
        nvml = self._nvml
        ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(
            nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", None
        )
        bits = self._ask(ask, handle) if ask else None
        if not bits:
            return []
        found = []
        for name, words in _THROTTLE:
            for prefix in ("nvmlClocksEventReason", "nvmlClocksThrottleReason"):
                bit = getattr(nvml, prefix + name, None)
                if isinstance(bit, int) and bits & bit:
                    found.append(words)
                    break
        return found

    def processes(self) -> list[tuple[int, int, int | None]]:
        """(card index, pid, bytes or None) of every compute process; pids are the host's."""
        found = []
        for index, _, _, handle in self._handles:
            for process in self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, handle) or ():
                size = process.usedGpuMemory
                found.append((index, int(process.pid), int(size) if size is not None else None))
        return found

    def capability(self, index: int) -> tuple[int, int] | None:
        """The card's compute capability."""
        for number, _, _, handle in self._handles:
            if number == index:
                got = self._ask(self._nvml.nvmlDeviceGetCudaComputeCapability, handle)
                return (int(got[0]), int(got[1])) if got else None
        return None

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """One value; None when this card does not have it."""
        try:
            return function(*arguments)
        except (self._nvml.NVMLError, AttributeError):
            return None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is(nvml: Any, error: Any, *names: str) -> bool:
    code = getattr(error, "value", None)
    return any(code == getattr(nvml, name, object()) for name in names)


def _words(nvml: Any, error: Any) -> str:
    return str(error)


def _sentence(nvml: Any, error: Any) -> str:
    if _is(nvml, error, "NVML_ERROR_LIBRARY_NOT_FOUND"):
        return "no NVIDIA driver on this machine (libnvidia-ml.so is missing)"
    if _is(nvml, error, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"):
        return "the NVIDIA driver was upgraded under its kernel module: reboot, or reload the nvidia modules"
    if _is(nvml, error, "NVML_ERROR_DRIVER_NOT_LOADED"):
        return "the NVIDIA driver is not loaded: sudo modprobe nvidia, or reinstall the driver for this kernel"
    if _is(nvml, error, "NVML_ERROR_NO_PERMISSION"):
        return "this user may not ask the NVIDIA driver: check the permissions of /dev/nvidia*"
    return f"NVML does not answer: {error}"
