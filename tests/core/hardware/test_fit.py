"""Torch judged against driver and cards: one sentence that says what to install, or none."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from llmtui.core.hardware.fit import TorchBuild, judge, machine_sentence, torch_build
from llmtui.core.hardware.nvml import NvmlReader
from tests.core.hardware.fake_nvml import FakeNvml

CUDA13, CUDA128 = TorchBuild("2.13.0+cu130", (13, 0)), TorchBuild("2.11.0", (12, 8))
CUDA126, CPU = TorchBuild("2.13.0", (12, 6)), TorchBuild("2.13.0+cpu", None)
H200, A100, T4, V100, B200 = ("H200", (9, 0)), ("A100", (8, 0)), ("T4", (7, 5)), ("V100", (7, 0)), ("B200", (10, 0))


@pytest.mark.parametrize(
    ("build", "driver", "cards", "words"),
    [
        (CUDA13, "580.95", [H200], ""),
        (CUDA13, "580.95", [B200, T4], ""),
        (
            CUDA13,
            "580.95",
            [V100],
            "no kernels for V100 (compute capability 7.0): uv pip install --torch-backend=cu126",
        ),
        (CUDA13, "580.95", [H200, V100], "--torch-backend=cu126 --reinstall 'torch==2.13.0'"),
        (CUDA13, "580.95", [B200, V100], "no wheel serves it beside B200"),
        (TorchBuild("2.15.1", (13, 2)), "580.95", [V100], "'torch<2.15'"),
        (CUDA128, "570.1", [V100], "no kernels for V100"),
        (CUDA128, "570.1", [B200], ""),
        (CUDA128, "560.1", [B200], "install driver 570"),
        (CUDA128, "535.1", [A100], ""),
        (CUDA13, "550.1", [A100], "install driver 580 or newer, or uv pip install --torch-backend=cu126"),
        (CUDA13, "570.1", [B200], "install driver 580 or newer"),
        (CUDA13, "470.199", [T4], "install driver 580 or newer"),
        (CUDA126, "560.1", [V100], ""),
        (CUDA126, "470.1", [V100], "install driver 525"),
        (CUDA126, "580.1", [B200], "no kernels for B200"),
        (CPU, "580.1", [T4], "built for the CPU"),
        (CPU, None, [], ""),
        (CUDA13, "odd", [T4], ""),
        (None, "580.1", [T4], "not installed"),
    ],
)
def test_one_sentence_says_what_to_install(
    build: TorchBuild | None, driver: str | None, cards: Any, words: str
) -> None:
    sentence = judge(build, driver, cards)
    assert (words in sentence) if words else sentence == ""


def test_the_installed_torch_is_described_without_importing_it() -> None:
    script = (
        "import sys; from llmtui.core.hardware.fit import torch_build\n"
        "assert torch_build().version; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    build = torch_build()
    assert build is not None
    assert build.version.startswith("2.")


def test_this_machine_is_judged_by_its_cards() -> None:
    build = torch_build()
    assert build is not None
    sentence = machine_sentence(NvmlReader(FakeNvml()))
    assert bool(sentence) == (build.cuda is None or build.cuda < (12, 6))
