"""Cards: what the shell lets through, what the preset asks for, who is first, and claims that die with their holder."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmtui.core.errors import MachineError
from llmtui.core.preset.schema import GpuSplitSection
from llmtui.core.process import cards
from llmtui.core.runs.events import HardwareGpu

GIB = 1 << 30


def card(index: int, used: float, total: int = 24, **more: object) -> HardwareGpu:
    return HardwareGpu(
        index=index, uuid=f"GPU-{index}abc", name=f"card {index}", used=int(used * GIB), total=total * GIB, **more
    )


FOUR = [card(0, 20), card(1, 0.1), card(2, 0.1, 48), card(3, 0.2, 16)]


@pytest.fixture(autouse=True)
def own_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "CLAIMS", tmp_path / "claims")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [(None, [0, 1, 2, 3]), ("", []), ("-1", []), ("3", [3]), ("2, 0", [2, 0]), ("GPU-1abc", [1]), ("GPU-1", [1]),
     ("0,9,1", [0]), ("MIG-x", []), ("NoDevFiles", [])],
)  # fmt: skip
def test_the_shells_visible_devices_are_the_outer_limit(setting: str | None, expected: list[int]) -> None:
    assert [c.index for c in cards.visible(FOUR, setting)] == expected


def test_auto_takes_idle_cards_first_and_the_roomiest_of_them() -> None:
    assert [c.index for c in cards.candidates(GpuSplitSection(), FOUR, "")] == [2, 1, 3, 0]


def test_no_card_means_the_cpu_unless_one_is_asked_for() -> None:
    assert cards.candidates(GpuSplitSection(), [], "no driver") == []
    assert cards.candidates(GpuSplitSection(gpus="none"), FOUR, "") == []
    with pytest.raises(MachineError, match="no driver"):
        cards.candidates(GpuSplitSection(gpus=[0]), [], "no driver")
    with pytest.raises(MachineError, match="GPU 7"):
        cards.candidates(GpuSplitSection(gpus=[7]), FOUR, "")


def test_a_lost_card_is_never_chosen() -> None:
    lost = [card(0, 0, lost=True), card(1, 0)]
    assert [c.index for c in cards.candidates(GpuSplitSection(), lost, "")] == [1]


def test_cards_are_named_by_index_or_uuid() -> None:
    assert [c.index for c in cards.candidates(GpuSplitSection(gpus=[3]), FOUR, "")] == [3]
    assert [c.index for c in cards.candidates(GpuSplitSection(gpus=["GPU-2abc"]), FOUR, "")] == [2]


def test_a_claimed_card_is_taken_once() -> None:
    lock = cards.claim(FOUR[0])
    assert lock is not None
    assert cards.is_claimed(FOUR[0])
    assert cards.claim(FOUR[0]) is None
    lock.release()
    assert not cards.is_claimed(FOUR[0])


@pytest.mark.parametrize(
    ("earlier", "free", "goes"),
    [([], [0], True), (["auto"], [0], False), (["auto"], [], True), ([[1]], [0], True), ([[0]], [0], False),
     ([[0, 1]], [0], True), ([["GPU-0abc"]], [0], False)],
)  # fmt: skip
def test_an_earlier_ticket_that_could_start_goes_first(earlier: list[object], free: list[int], goes: bool) -> None:
    assert cards.may_go(earlier, [FOUR[i] for i in free]) is goes
