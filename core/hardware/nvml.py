"""The NVIDIA cards through NVML: one handle held open, each value read alone, trouble in plain sentences.

Cards are in PCI order, as `nvidia-smi` numbers them. A card in MIG mode is shown as its instances, each with the
card's index and a UUID of its own, because CUDA uses instances only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pynvml

from llmtui.core.runs.events import HardwareGpu

# Names of NVML's clock event (throttle) reasons; idle and plain application clocks are no trouble.
_THROTTLE: Final = (
    ("SwPowerCap", "power cap"), ("HwSlowdown", "hardware slowdown"), ("SwThermalSlowdown", "thermal (software)"),
    ("HwThermalSlowdown", "thermal (hardware)"), ("HwPowerBrakeSlowdown", "power brake"),
)  # fmt: skip
_FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC  # the kernel's PROC_PID_INIT_INO: not in a container
_TRY_AGAIN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Card:
    """One card or MIG instance as it was when NVML was opened."""

    index: int
    uuid: str
    name: str
    handle: Any
    instance: bool = False


class NvmlReader:
    """Reads all cards; `note` says in a sentence why there are none, or what is wrong.

    Args:
        library: the `pynvml` module; tests put one with other cards in its place.
    """

    def __init__(self, library: Any = pynvml) -> None:
        self._nvml = library
        self._cards: list[_Card] = []
        self._lost: set[str] = set()
        self._opened = 0.0
        self._own_pids = _pids_are_the_hosts()
        self.note = ""
        self.driver: str | None = None
        self._open()

    # --- opening ----------------------------------------------------------------------------------

    def _open(self) -> None:
        nvml, self._opened, self.note = self._nvml, time.monotonic(), ""
        try:
            nvml.nvmlInit()
            self.driver = _text(nvml.nvmlSystemGetDriverVersion())
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            self.note = _sentence(nvml, error)
            return
        except OSError as error:  # a library that cannot be loaded for another reason than being missing
            self.note = f"NVML cannot be loaded: {error}; reinstall the NVIDIA driver"
            return
        for index in range(count):
            try:
                self._cards += self._found(index)
            except nvml.NVMLError as error:
                self.note = f"GPU {index} cannot be read: {_sentence(nvml, error)}"

    def _found(self, index: int) -> list[_Card]:
        """The card, or its MIG instances."""
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
        mode = self._ask("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != getattr(nvml, "NVML_DEVICE_MIG_ENABLE", 1):
            return [_Card(index, uuid, name, handle)]
        instances = []
        for number in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            part = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
            if part is None:
                continue  # places are not filled without gaps
            part_uuid, part_name = self._ask("nvmlDeviceGetUUID", part), self._ask("nvmlDeviceGetName", part)
            instances.append(_Card(index, _text(part_uuid or ""), _text(part_name or f"{name} MIG"), part, True))
        if not instances:
            self.note = f"GPU {index} is in MIG mode without an instance: sudo nvidia-smi mig -cgi 0 -C makes one"
        return instances

    # --- reading ----------------------------------------------------------------------------------

    def sample(self, pids: Iterable[int], uuids: Collection[str] = ()) -> tuple[list[HardwareGpu], str]:
        """Every card now, and a note.

        Args:
            pids: processes of this run; their memory is told apart from others'.
            uuids: only these cards; none means all.
        """
        if not self._cards and time.monotonic() - self._opened > _TRY_AGAIN_SECONDS:
            self._open()  # the driver may have been loaded meanwhile
        own = set(pids)
        return [self._read(card, own) for card in self._chosen(uuids)], self._note_of_lost() or self.note

    def memory(self, uuids: Collection[str] = ()) -> list[HardwareGpu]:
        """Only what is used of how much, and whether a card is lost: a tenth of a sample's cost."""
        found = []
        for card in self._chosen(uuids):
            used, total = self._memory(card)
            found.append(HardwareGpu(index=card.index, uuid=card.uuid, name=card.name, used=used, total=total,
                                     lost=card.uuid in self._lost))  # fmt: skip
        return found

    def _chosen(self, uuids: Collection[str]) -> list[_Card]:
        return [card for card in self._cards if not uuids or card.uuid in uuids]

    def _read(self, card: _Card, own: set[int]) -> HardwareGpu:
        used, total = self._memory(card)
        if card.uuid in self._lost:
            return HardwareGpu(index=card.index, uuid=card.uuid, name=card.name, lost=True)
        mine, others = self._shares(card, own, used)
        use = self._ask("nvmlDeviceGetUtilizationRates", card.handle)
        nvml = self._nvml
        return HardwareGpu(
            index=card.index, uuid=card.uuid, name=card.name, used=used, total=total, this_run=mine, others=others,
            utilization_gpu=int(use.gpu) if use else None, utilization_memory=int(use.memory) if use else None,
            clock_sm=self._ask("nvmlDeviceGetClockInfo", card.handle, nvml.NVML_CLOCK_SM),
            clock_memory=self._ask("nvmlDeviceGetClockInfo", card.handle, nvml.NVML_CLOCK_MEM),
            throttle_reasons=self._throttling(card.handle),
            power=_watts(self._ask("nvmlDeviceGetPowerUsage", card.handle)),
            power_limit=_watts(self._ask("nvmlDeviceGetEnforcedPowerLimit", card.handle)),
            temperature=self._ask("nvmlDeviceGetTemperature", card.handle, nvml.NVML_TEMPERATURE_GPU),
        )  # fmt: skip

    def _memory(self, card: _Card) -> tuple[int | None, int | None]:
        """Used and total bytes; unknown on unified memory (GB10), where the host's numbers hold.

        Used is with what the driver reserves, which nvidia-smi leaves out, so that what is free is total - used.
        """
        nvml = self._nvml
        try:
            memory = nvml.nvmlDeviceGetMemoryInfo(card.handle)
        except nvml.NVMLError as error:
            if _is(nvml, error, "NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_RESET_REQUIRED"):
                self._lost.add(card.uuid)
            return None, None
        self._lost.discard(card.uuid)
        return (int(memory.used), int(memory.total)) if memory.total else (None, None)

    def _shares(self, card: _Card, own: set[int], used: int | None) -> tuple[int | None, int | None]:
        """Bytes of this run's processes and of everybody else (other processes and the driver).

        In a container NVML gives the host's process ids, so a run may not find itself: then its share is unknown.
        """
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses", card.handle)
        if processes is None:
            return None, None
        held = {int(p.pid): p.usedGpuMemory for p in processes}
        mine = [held[pid] for pid in own if pid in held]
        if any(size is None for size in mine):
            return None, None  # NVML knows the process, but not its memory
        if own and not mine and held and not self._own_pids:
            return None, None
        total = sum(int(size) for size in mine)
        return total, max(0, used - total) if used is not None else None

    def _throttling(self, handle: Any) -> list[str]:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)  # drivers before 535
        found = []
        for name, words in _THROTTLE:
            for prefix in ("nvmlClocksEventReason", "nvmlClocksThrottleReason"):
                bit = getattr(self._nvml, prefix + name, None)
                if bits and isinstance(bit, int) and bits & bit:
                    found.append(words)
                    break
        return found

    def processes(self) -> list[tuple[int, int, int | None]]:
        """(card index, pid, bytes or None) of every compute process; in a container pids are the host's."""
        found = []
        for card in self._cards:
            for process in self._ask("nvmlDeviceGetComputeRunningProcesses", card.handle) or ():
                size = process.usedGpuMemory
                found.append((card.index, int(process.pid), int(size) if size is not None else None))
        return found

    def capability(self, index: int) -> tuple[int, int] | None:
        """The card's compute capability."""
        for card in self._cards:
            if card.index == index:
                got = self._ask("nvmlDeviceGetCudaComputeCapability", card.handle)
                return (int(got[0]), int(got[1])) if got else None
        return None

    def _note_of_lost(self) -> str:
        lost = [str(card.index) for card in self._cards if card.uuid in self._lost]
        if not lost:
            return ""
        who = f"GPU {lost[0]} is" if len(lost) == 1 else f"GPUs {', '.join(lost)} are"
        return f"{who} lost (fell off the bus): look for Xid in dmesg, then reboot"

    def _ask(self, function: str, *arguments: Any) -> Any:
        """One value; None when this card, driver or library does not have it."""
        call: Callable[..., Any] | None = getattr(self._nvml, function, None)
        if call is None:
            return None
        try:
            return call(*arguments)
        except self._nvml.NVMLError:
            return None


def _pids_are_the_hosts() -> bool:
    """Whether our process ids are those that NVML knows."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    except OSError:
        return False


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is(nvml: Any, error: Any, *names: str) -> bool:
    code = getattr(error, "value", None)
    return any(code == getattr(nvml, name, object()) for name in names)


_SENTENCES: Final = {
    "NVML_ERROR_LIBRARY_NOT_FOUND": "no NVIDIA driver on this machine (libnvidia-ml.so is missing): install one to use"
    " a GPU, in a container start it with --gpus all",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "the NVIDIA driver was upgraded under its loaded kernel module: reboot, or"
    " unload and load the nvidia modules",
    "NVML_ERROR_DRIVER_NOT_LOADED": "the NVIDIA driver is not loaded: sudo modprobe nvidia, or reinstall the driver for"
    " this kernel",
    "NVML_ERROR_NO_PERMISSION": "this user may not ask the NVIDIA driver: check the permissions of /dev/nvidia*",
    "NVML_ERROR_GPU_IS_LOST": "it fell off the bus: look for Xid in dmesg, then reboot",
    "NVML_ERROR_RESET_REQUIRED": "it needs a reset: sudo nvidia-smi --gpu-reset, or reboot",
    "NVML_ERROR_INSUFFICIENT_POWER": "a power cable is not plugged in",
    "NVML_ERROR_IRQ_ISSUE": "the kernel has trouble with its interrupts: look into dmesg",
}


def _sentence(nvml: Any, error: Any) -> str:
    for name, sentence in _SENTENCES.items():
        if _is(nvml, error, name):
            return sentence
    return f"NVML does not answer: {error}"
