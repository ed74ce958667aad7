"""Cards through a fake NVML: each value alone, lost cards, MIG, containers, trouble in words."""

from __future__ import annotations

import pynvml
import pytest

from llmtui.core.hardware import nvml
from llmtui.core.hardware.nvml import NvmlReader
from tests.core.hardware.fake_nvml import GIB, FakeNvml


def test_every_value_of_every_card_is_read() -> None:
    gpus, note = NvmlReader(FakeNvml()).sample([102])
    assert note == ""
    assert [(g.index, g.uuid, g.name, g.used) for g in gpus][2] == (2, "GPU-2", "NVIDIA H200 [x]", 3 * GIB)
    assert [g.total for g in gpus] == [24 * GIB, 48 * GIB, 141 * GIB, 16 * GIB]
    assert [g.utilization_gpu for g in gpus] == [90, 91, 92, 93]
    assert [g.throttle_reasons for g in gpus] == [["power cap"], [], [], []]
    assert (gpus[0].power, gpus[0].power_limit, gpus[0].temperature) == (250.5, 700.0, 60)
    assert (gpus[2].this_run, gpus[2].others) == (GIB, 2 * GIB)


FUNCTIONS = [name for name in dir(FakeNvml) if name.startswith("nvmlDeviceGet") and name not in (
    "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName", "nvmlDeviceGetUUID")]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_value_that_is_not_supported_takes_nothing_else_with_it(name: str) -> None:
    whole, _ = NvmlReader(FakeNvml()).sample([101])
    gpus, note = NvmlReader(FakeNvml(broken=(f"{name}:1",))).sample([101])
    assert note == ""
    assert [gpu for gpu in gpus if gpu.index != 1] == [gpu for gpu in whole if gpu.index != 1]
    fields = [f for f in gpus[1].__struct_fields__ if getattr(gpus[1], f) != getattr(whole[1], f)]
    assert len(fields) <= 3
    assert all(getattr(gpus[1], field) in (None, []) for field in fields)


def test_unified_memory_has_unknown_numbers_and_no_zeros() -> None:
    gpus, _ = NvmlReader(FakeNvml(broken=("nvmlDeviceGetMemoryInfo",))).sample([100])
    assert (gpus[0].used, gpus[0].total, gpus[0].others, gpus[0].lost) == (None, None, None, False)
    assert gpus[0].this_run == GIB


def test_a_lost_card_is_marked_and_the_others_go_on() -> None:
    reader = NvmlReader(FakeNvml(lost=1))
    for _ in range(2):
        gpus, note = reader.sample([])
        assert (gpus[1].lost, note) == (False, "")
    for _ in range(3):
        gpus, note = reader.sample([])
        assert [g.lost for g in gpus] == [False, True, False, False]
        assert gpus[2].used == 3 * GIB
        assert "GPU 1 is lost" in note
        assert "Xid" in note
    assert [card.lost for card in reader.memory()] == [False, True, False, False]


def test_only_the_cards_that_are_asked_for_are_read() -> None:
    fake = FakeNvml()
    gpus, _ = NvmlReader(fake).sample([], ["GPU-2"])
    assert [gpu.index for gpu in gpus] == [2]
    assert fake.polls == {0: 0, 1: 0, 2: 1, 3: 0}


@pytest.mark.parametrize(
    ("hosts", "own", "held", "expected"),
    [
        (True, [999], [(100, GIB)], (0, GIB)),  # our processes are not on the card
        (False, [999], [(100, GIB)], (None, None)),  # in a container that may be us
        (False, [999], [], (0, GIB)),
        (False, [100], [(100, GIB // 2)], (GIB // 2, GIB // 2)),
        (True, [100], [(100, None)], (None, None)),
        (True, [100, 101], [(100, GIB // 4), (101, GIB // 4), (7, None)], (GIB // 2, GIB // 2)),
    ],
)
def test_the_runs_share_is_known_or_unknown_but_never_wrong(
    monkeypatch: pytest.MonkeyPatch, hosts: bool, own: list[int], held: list[tuple[int, int | None]],
    expected: tuple[int | None, int | None],
) -> None:  # fmt: skip
    monkeypatch.setattr(nvml, "_pids_are_the_hosts", lambda: hosts)
    fake = FakeNvml()
    fake.held[0] = held
    gpu = NvmlReader(fake).sample(own)[0][0]
    assert (gpu.this_run, gpu.others) == expected


def test_a_card_in_mig_mode_is_its_instances() -> None:
    reader = NvmlReader(FakeNvml(mig=2))
    gpus, _ = reader.sample([])
    assert [(g.index, g.uuid) for g in gpus][1:4] == [(1, "GPU-1"), (2, "MIG-2/0"), (2, "MIG-2/1")]
    assert gpus[2].total == 18 * GIB
    empty = NvmlReader(FakeNvml(mig=2, instances=0))
    gpus, note = empty.sample([])
    assert [g.index for g in gpus] == [0, 1, 3]
    assert "GPU 2 is in MIG mode without an instance" in note


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver"),
        (18, "reboot"),  # driver/library version mismatch, after an unattended upgrade
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "modprobe"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "permissions"),
        (pynvml.NVML_ERROR_UNKNOWN, "does not answer"),
    ],
)
def test_trouble_is_a_sentence_with_a_cure(code: int, words: str) -> None:
    reader = NvmlReader(FakeNvml(init=code))
    assert reader.sample([]) == ([], reader.note)
    assert words in reader.note
    assert reader.processes() == []


def test_a_driver_that_is_mended_is_found_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeNvml(init=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    reader = NvmlReader(fake)
    reader.sample([])
    assert fake.opened == 1
    fake.init = None
    monkeypatch.setattr(nvml, "_TRY_AGAIN_SECONDS", -1.0)
    gpus, note = reader.sample([])
    assert (len(gpus), note, reader.driver) == (4, "", "580.95")


def test_the_processes_on_the_cards_are_listed() -> None:
    fake = FakeNvml()
    fake.held[3] = []
    fake.held[1] = [(7, None)]
    assert NvmlReader(fake).processes() == [(0, 100, GIB), (1, 7, None), (2, 102, GIB)]
    assert NvmlReader(fake).capability(3) == (7, 5)
    assert NvmlReader(fake).capability(9) is None
