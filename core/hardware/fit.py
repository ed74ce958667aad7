"""Does the installed torch fit this driver and these cards? Asked without importing torch.

Sources: PyTorch's CUDA support matrix (RELEASE.md, releases 2.11 to 2.14) and NVIDIA's CUDA release notes: CUDA 13
needs driver 580 and has no code for cards before Turing (7.5); CUDA 12.6 builds carry Maxwell (5.0) to Hopper (9.0),
want driver 560 and run from 525 on by minor-version compatibility; Blackwell (10.0 and up) needs CUDA 12.8 or newer.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from llmtui.core.hardware.nvml import NvmlReader


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """`cuda` is the version torch was built for, None for a CPU build."""

    version: str
    cuda: tuple[int, int] | None


def torch_build() -> TorchBuild | None:
    """What torch was built for, read from its files; None when it is not installed."""
    try:
        version = metadata.version("torch")
        found = importlib.util.find_spec("torch")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    if found is None or not found.origin:
        return TorchBuild(version, None)
    try:
        text = (Path(found.origin).parent / "version.py").read_text("utf-8")
    except OSError:
        return TorchBuild(version, None)
    match = re.search(r"""^cuda[^=\n]*=\s*['"](\d+)\.(\d+)""", text, re.MULTILINE)
    return TorchBuild(version, (int(match[1]), int(match[2])) if match else None)


def judge(build: TorchBuild | None, driver: str | None, capabilities: list[tuple[str, tuple[int, int]]]) -> str:
    """One sentence with what to install, empty when all is well.

    Args:
        driver: its version, such as `580.95`; None without a driver.
        capabilities: name and compute capability of each card.
    """
    if build is None:
        return "torch is not installed: pip install torch"
    if driver is None or not capabilities:
        return ""
    base = build.version.split("+")[0]
    legacy = f"uv pip install --torch-backend=cu126 torch=={base}"
    number = int(driver.split(".")[0]) if driver.split(".")[0].isdigit() else 0
    if build.cuda is None:
        return (
            f"torch {build.version} is built for the CPU, and this machine has an NVIDIA card: "
            f"uv pip install --torch-backend=auto --reinstall torch=={base}"
        )
    oldest = min(capabilities, key=lambda item: item[1])
    if build.cuda[0] >= 13 and oldest[1] < (7, 5):
        return f"torch for CUDA {build.cuda[0]} has no kernels for {oldest[0]} ({_dot(oldest[1])}): {legacy}"
    newest = max(capabilities, key=lambda item: item[1])
    if build.cuda < (12, 8) and newest[1] >= (10, 0):
        cure = f"uv pip install --torch-backend=auto torch=={base}"
        return f"torch for CUDA {_dot(build.cuda)} has no kernels for {newest[0]}: {cure}"
    needed = 580 if build.cuda[0] >= 13 else 525
    if number and number < needed:
        cure = legacy if build.cuda[0] >= 13 and number >= 525 else f"install driver {needed} or newer"
        return f"driver {driver} is too old for torch built for CUDA {_dot(build.cuda)} (it needs {needed}): {cure}"
    return ""


def _dot(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


def machine_sentence(reader: NvmlReader | None = None) -> str:
    """`judge` on this machine."""
    reader = reader or NvmlReader()
    gpus, _ = reader.sample(())
    known = [(gpu.name, capability) for gpu in gpus if (capability := reader.capability(gpu.index))]
    return judge(torch_build(), reader.driver, known)
