"""The machine as it is now, for screens that no supervisor measures for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llmtui.core.runs.events import Hardware, HardwareGpu

if TYPE_CHECKING:
    from llmtui.core.hardware.nvml import NvmlReader

_GRAIN: Final = 16 << 20  # smaller changes of memory are no news


@cache
def _reader() -> NvmlReader:
    """One NVML handle for the life of the screen; opening it costs a GPU's wake-up without persistence mode."""
    from llmtui.core.hardware.nvml import NvmlReader

    return NvmlReader()


def cards() -> list[HardwareGpu]:
    """The cards now."""
    return _reader().sample(())[0]


def sample_machine(folder: Path) -> Hardware:
    """The cards, CPU, RAM, and the disk that this folder is on; None for what cannot be read."""
    from llmtui.core.hardware.host import sample_host

    gpus, note = _reader().sample(())
    host = sample_host(folder)
    return Hardware(
        gpus=gpus,
        note=note,
        cpu_percent=round(host.cpu_percent),
        ram_used=host.ram_used // _GRAIN * _GRAIN,
        ram_total=host.ram_total,
        disk_free=None if host.disk_free is None else host.disk_free // _GRAIN * _GRAIN,
        disk_total=host.disk_total,
    )
