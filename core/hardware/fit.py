"""Does the installed torch fit this driver and these cards? Asked without importing torch.

Sources: PyTorch's CUDA support matrix (RELEASE.md, 2.11 to 2.14; pytorch/pytorch#172352, #190385) and NVIDIA's CUDA
release notes. From torch 2.11 on only the CUDA 12.6 wheels have code for cards before Turing (7.5), such as the V100;
they end with 2.14 and have none for Blackwell (10.0 and up). CUDA 13 needs driver 580; CUDA 12 runs from driver 525 on
by minor-version compatibility, on Blackwell from 570 on.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

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


Capability = tuple[int, int]
_FIRST_WITHOUT_LEGACY: Final = (2, 15)


@dataclass(frozen=True, slots=True)
class _Wheel:
    """What the wheels for a CUDA release have code for, and the driver they need."""

    oldest: Capability
    newest: Capability
    driver: int


def _wheel(cuda: tuple[int, int], newest: Capability) -> _Wheel:
    if cuda[0] >= 13:
        return _Wheel((7, 5), (99, 0), 580)
    if cuda >= (12, 8):
        return _Wheel((7, 5), (12, 99), 570 if newest >= (10, 0) else 525)
    return _Wheel((5, 0), (9, 99), 525)


def judge(build: TorchBuild | None, driver: str | None, capabilities: list[tuple[str, Capability]]) -> str:
    """One sentence with what to install, empty when all is well.

    Args:
        driver: its version, such as `580.95`; None without a driver.
        capabilities: name and compute capability of each card.
    """
    if build is None:
        return "torch is not installed: pip install torch"
    if driver is None or not capabilities:
        return ""
    anew = f"uv pip install --torch-backend=auto --reinstall torch=={build.version.split('+')[0]}"
    if build.cuda is None:
        return f"torch {build.version} is built for the CPU, and this machine has an NVIDIA card: {anew}"
    oldest, newest = min(capabilities, key=lambda c: c[1]), max(capabilities, key=lambda c: c[1])
    wheel = _wheel(build.cuda, newest[1])
    built = f"torch built for CUDA {_dot(build.cuda)}"
    if oldest[1] < wheel.oldest:
        cure = _legacy(build) if newest[1] < (10, 0) else (
            f"no wheel serves it beside {newest[0]}; name the cards to use in gpu_split.gpus"
        )  # fmt: skip
        return f"{built} has no kernels for {oldest[0]} (compute capability {_dot(oldest[1])}): {cure}"
    if newest[1] > wheel.newest:
        return f"{built} has no kernels for {newest[0]} (compute capability {_dot(newest[1])}): {anew}"
    number = int(driver.split(".")[0]) if driver.split(".")[0].isdecimal() else wheel.driver
    if number < wheel.driver:
        old_will_do = build.cuda[0] >= 13 and number >= 525 and newest[1] < (10, 0)
        cure = f"install driver {wheel.driver} or newer" + (f", or {_legacy(build)}" if old_will_do else "")
        return f"driver {driver} is too old for {built}: {cure}"
    return ""


def _legacy(build: TorchBuild) -> str:
    """The command for the wheels of CUDA 12.6."""
    base = build.version.split("+")[0]
    ended = tuple(int(part) for part in re.findall(r"\d+", base)[:2]) >= _FIRST_WITHOUT_LEGACY
    return f"uv pip install --torch-backend=cu126 --reinstall 'torch{'<2.15' if ended else '==' + base}'"


def _dot(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


def machine_sentence(reader: NvmlReader | None = None) -> str:
    """`judge` on this machine."""
    reader = reader or NvmlReader()
    gpus, _ = reader.sample(())
    known = [(gpu.name, capability) for gpu in gpus if (capability := reader.capability(gpu.index))]
    return judge(torch_build(), reader.driver, known)
