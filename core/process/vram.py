"""Is the GPU memory of an ended worker back? Judged by its processes on the cards, or by what the cards show."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.runs import events as ev

_LIMIT: Final = 10.0
_SLACK_BYTES: Final = 256 << 20


class VramBack:
    """Remembers what the cards held before and during the run.

    In a container NVML names processes by the host's numbers, so the worker may not find itself there; then a card
    counts as given back when it shows no more than when the watch began.
    """

    def __init__(self, nvml: NvmlReader, uuids: Sequence[str]) -> None:
        self._nvml = nvml
        self._uuids = frozenset(uuids)
        self._pids: set[int] = set()
        self._seen_there = False
        self._before = {card.uuid: card.used for card in self._cards()}

    def note(self, sample: ev.Hardware | None, pids: Iterable[int]) -> None:
        """One sample while the worker lives."""
        self._pids |= set(pids)
        if sample is not None:
            self._seen_there = self._seen_there or any(card.this_run for card in sample.gpus)

    def wait(self) -> str:
        """Wait until the memory is back; a sentence if it is not in time."""
        end = time.monotonic() + _LIMIT
        while self._uuids:
            held = self._held()
            if not held:
                break
            if time.monotonic() > end:
                return f"the worker is gone, but its memory on {' and '.join(held)} is not back after {_LIMIT:g} s"
            time.sleep(0.1)
        return ""

    def _held(self) -> list[str]:
        cards = self._cards()
        if self._seen_there:
            holding = {index for index, pid, _ in self._nvml.processes() if pid in self._pids}
            return [f"GPU {card.index}" for card in cards if card.index in holding]
        return [
            f"GPU {card.index}" for card in cards
            if card.used is not None and (before := self._before.get(card.uuid)) is not None
            and card.used > before + _SLACK_BYTES
        ]  # fmt: skip

    def _cards(self) -> list[ev.HardwareGpu]:
        return self._nvml.memory(self._uuids) if self._uuids else []
