"""An NVML with four unequal cards, where the machine has none: the real module's constants and errors, other answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml

GIB = 1 << 30
NAMES = ("NVIDIA GeForce RTX 3090", "NVIDIA RTX A6000", "NVIDIA H200 [x]", "Tesla T4")
TOTALS = (24, 48, 141, 16)
CAPABILITIES = ((8, 6), (8, 6), (9, 0), (7, 5))


class FakeNvml:
    """Four unequal cards.

    Args:
        broken: functions that this hardware lacks; `function:card` lacks it on one card only.
        lost: the card that falls off the bus at its third poll.
        init: the error code that opening ends with.
        mig: the card in MIG mode, with `instances` instances.
    """

    def __init__(
        self, broken: tuple[str, ...] = (), lost: int | None = None, init: int | None = None, mig: int | None = None,
        instances: int = 2,
    ) -> None:  # fmt: skip
        self.broken, self.lost, self.init, self.mig, self.instances = broken, lost, init, mig, instances
        self.polls = dict.fromkeys(range(4), 0)
        self.opened = 0
        self.held: dict[int, list[tuple[int, int | None]]] = {card: [(100 + card, GIB)] for card in range(4)}
        self.used = {card: (card + 1) * GIB for card in range(4)}

    def __getattr__(self, name: str) -> Any:
        """Constants and errors are the real module's; so is a function that this fake does not have: not supported."""
        value = getattr(pynvml, name)
        return value if not callable(value) or isinstance(value, type) else self._not_supported

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            return object.__getattribute__(self, name)
        broken = object.__getattribute__(self, "broken")
        if name in broken:
            return self._not_supported
        function = object.__getattribute__(self, name)

        def on_a_good_card(*arguments: Any) -> Any:
            if arguments and f"{name}:{arguments[0]}" in broken:
                self._not_supported()
            return function(*arguments)

        return on_a_good_card

    def _not_supported(self, *_: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlInit(self) -> None:
        self.opened += 1
        if self.init is not None:
            raise pynvml.NVMLError(self.init)

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95"

    def nvmlDeviceGetCount(self) -> int:
        return 4

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, handle: Any) -> bytes:
        return NAMES[handle].encode() if isinstance(handle, int) else b"NVIDIA H200 MIG 1g.18gb"

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        return f"GPU-{handle}" if isinstance(handle, int) else f"MIG-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:
        if not isinstance(handle, int):
            return SimpleNamespace(used=GIB, total=18 * GIB)
        self.polls[handle] += 1
        if self.lost == handle and self.polls[handle] >= 3:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return SimpleNamespace(used=self.used[handle], total=TOTALS[handle] * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:
        held = self.held.get(handle, [])
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held]

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        if not isinstance(handle, int):
            self._not_supported()
        return SimpleNamespace(gpu=90 + handle, memory=40)

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return 1000 * (kind + 1)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return 250_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, handle: int, kind: int) -> int:
        return 60

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return int(pynvml.nvmlClocksEventReasonSwPowerCap if handle == 0 else pynvml.nvmlClocksEventReasonGpuIdle)

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return CAPABILITIES[handle]

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:
        if handle != self.mig:
            self._not_supported()
        return (1, 1)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, number: int) -> str:
        if number >= self.instances:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"{handle}/{number}"
