"""The machine as it is now, for screens that no supervisor measures for."""

from __future__ import annotations

import os
from pathlib import Path

from llmtui.core.runs.events import Hardware


def sample_machine(folder: Path) -> Hardware:
    """CPU, RAM, and the disk that this folder is on; None for what cannot be read."""
    import psutil

    memory = psutil.virtual_memory()
    try:
        disk = os.statvfs(folder)
    except OSError:
        disk = None
    return Hardware(
        cpu_percent=psutil.cpu_percent(),
        ram_used=memory.total - memory.available,
        ram_total=memory.total,
        disk_free=None if disk is None else disk.f_bavail * disk.f_frsize,
        disk_total=None if disk is None else disk.f_blocks * disk.f_frsize,
    )
