"""Cards: what the shell lets through, what the preset asks for, and claims that die with their holder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmtui.core.errors import MachineError
from llmtui.core.preset.schema import GpuSplitSection
from llmtui.core.process import cards
from llmtui.core.process.starting import describe_attempt
from llmtui.core.process.worker_process import worker_environment
from llmtui.core.runs.attempt import AttemptGpu
from llmtui.core.runs.checkpoints import Found
from llmtui.core.runs.events import HardwareGpu
from tests.core.process.runs import new_run

GIB = 1 << 30


def card(index: int, used: float = 0.1, total: int = 24, *, lost: bool = False) -> HardwareGpu:
    return HardwareGpu(
        index=index, uuid=f"GPU-{index}abc", name=f"card {index}", used=int(used * GIB), total=total * GIB, lost=lost
    )


# As in a mixed box: NVML counts by PCI bus, CUDA by speed.
FOUR = [card(0, 20), card(1), card(2, 0.1, 48), card(3, 0.2, 16)]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [(None, [0, 1, 2, 3]), ("", []), ("-1", []), ("3", [3]), ("2, 0", [2, 0]), ("GPU-1abc", [1]), ("GPU-1", [1]),
     ("0,9,1", [0]), ("1,1", [1]), ("MIG-x", []), ("NoDevFiles", [])],
)  # fmt: skip
def test_the_shells_visible_devices_are_the_outer_limit(setting: str | None, expected: list[int]) -> None:
    assert [c.index for c in cards.visible(FOUR, setting)] == expected


def test_auto_takes_idle_cards_first_and_the_roomiest_of_them() -> None:
    assert [c.index for c in cards.candidates(GpuSplitSection(), FOUR, "")] == [2, 1, 3, 0]


def test_no_card_means_the_cpu_unless_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cards.candidates(GpuSplitSection(), [], "no driver") == []
    assert cards.candidates(GpuSplitSection(gpus="none"), FOUR, "") == []
    with pytest.raises(MachineError, match="no driver"):
        cards.candidates(GpuSplitSection(gpus=[0]), [], "no driver")
    with pytest.raises(MachineError, match=r"GPU 7, which is not here: there is 0 \(card 0\)"):
        cards.candidates(GpuSplitSection(gpus=[7]), FOUR, "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(MachineError, match="CUDA_VISIBLE_DEVICES=-1 hides every card"):
        cards.candidates(GpuSplitSection(gpus=[0]), FOUR, "")


def test_a_lost_card_is_never_chosen() -> None:
    assert [c.index for c in cards.candidates(GpuSplitSection(), [card(0, lost=True), card(1)], "")] == [1]


def test_cards_are_named_by_index_or_uuid_in_the_presets_order() -> None:
    assert [c.index for c in cards.candidates(GpuSplitSection(gpus=[3]), FOUR, "")] == [3]
    assert [c.index for c in cards.candidates(GpuSplitSection(gpus=["GPU-2abc", 0]), FOUR, "")] == [2, 0]


def test_a_worker_is_told_its_cards_by_uuid_in_pci_order_whatever_the_shell_says() -> None:
    directory = new_run()
    environment = worker_environment(directory, ["GPU-3abc", "GPU-0abc"], {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1"})
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-3abc,GPU-0abc"
    assert worker_environment(directory, [], {"CUDA_VISIBLE_DEVICES": "1"})["CUDA_VISIBLE_DEVICES"] == ""
    gpus = [AttemptGpu(index=3, uuid="GPU-3abc", name="card 3")]
    assert describe_attempt(directory, 1, Found(None, None), gpus, "580.95").gpus == gpus


def test_a_claimed_card_is_taken_once_and_free_when_its_holder_is_gone() -> None:
    lock = cards.claim(FOUR[0])
    assert lock is not None
    assert cards.is_claimed(FOUR[0])
    assert cards.claim(FOUR[0]) is None
    assert cards.claim(FOUR[1]) is not None
    lock.release()
    assert not cards.is_claimed(FOUR[0])


def test_every_user_may_claim_and_nobody_may_remove_anothers_claim(own_claims: Path) -> None:
    before = os.umask(0o077)
    try:
        assert cards.claim(FOUR[0]) is not None
    finally:
        os.umask(before)
    assert own_claims.stat().st_mode & 0o7777 == 0o1777
    assert (own_claims / "GPU-0abc").stat().st_mode & 0o777 == 0o666


def test_a_claim_survives_a_cleaner_that_removes_its_file(own_claims: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = cards.Claims()
    lock = cards.claim(FOUR[0])
    assert lock is not None
    held.hold([lock])
    os.utime(own_claims / "GPU-0abc", (0, 0))
    monkeypatch.setattr(cards, "_FRESH_SECONDS", 0.0)
    held.keep_fresh()
    assert (own_claims / "GPU-0abc").stat().st_mtime > 0
    held.release()
    assert not cards.is_claimed(FOUR[0])


def test_a_claims_folder_that_is_none_is_an_error_and_not_a_claim(own_claims: Path) -> None:
    own_claims.write_text("somebody else's")
    with pytest.raises(OSError, match="no folder"):
        cards.claim(FOUR[0])
    assert not cards.is_claimed(FOUR[0])
