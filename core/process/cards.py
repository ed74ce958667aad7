"""Which cards an attempt gets: asked for by index or UUID, or the idlest; claimed machine-wide; waited for in order."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.home import home
from llmtui.core.preset.schema import GpuSplitSection
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.events import HardwareGpu

CLAIMS: Final = Path(os.environ.get("LLMTUI_CLAIMS", "/tmp/llmtui-claims"))
_BUSY_BYTES: Final = 1 << 30  # more than this in use by others: not idle


@dataclass(frozen=True, slots=True)
class Choice:
    """Cards to use, in order; none means the CPU."""

    cards: tuple[HardwareGpu, ...]
    said: str = ""


def visible(cards: Sequence[HardwareGpu], setting: str | None) -> list[HardwareGpu]:
    """The cards that `CUDA_VISIBLE_DEVICES` lets through; unset lets all through, empty or -1 none."""
    if setting is None:
        return list(cards)
    chosen: list[HardwareGpu] = []
    for part in (p.strip() for p in setting.split(",")):
        match = [
            card for card in cards
            if (part.isdigit() and card.index == int(part)) or (part and not part.isdigit() and card.uuid.startswith(part))
        ]  # fmt: skip
        if not match:
            break  # as CUDA does: what follows an invalid entry is invisible
        chosen += match
    return chosen


def candidates(split: GpuSplitSection, cards: Sequence[HardwareGpu], note: str) -> list[HardwareGpu]:
    """Cards that would do, best first; empty means the CPU.

    Raises:
        MachineError: the preset names a card that is not there or not visible.
    """
    if split.gpus == "none":
        return []
    usable = [card for card in visible(cards, os.environ.get("CUDA_VISIBLE_DEVICES")) if not card.lost]
    if split.gpus == "auto":
        return sorted(usable, key=lambda c: ((c.used or 0) > _BUSY_BYTES, (c.used or 0) - (c.total or 0), c.index))
    named: list[HardwareGpu] = []
    for wanted in split.gpus:
        match = [c for c in usable if c.index == wanted or (isinstance(wanted, str) and c.uuid == wanted)]
        if not match:
            there = ", ".join(f"{c.index} ({c.name})" for c in usable) or note or "no card is visible"
            raise MachineError(f"the preset asks for GPU {wanted}, which is not here: {there}",
                               place="gpu_split.gpus", hint="use gpus: auto, an index of llmtui gpus, or none for the CPU")  # fmt: skip
        named += match
    return named


def claim(card: HardwareGpu) -> locks.Lock | None:
    """Claim a card machine-wide; None when another run has it. The claim dies with the processes that hold it."""
    _claims_folder()
    path = CLAIMS / (card.uuid or f"index-{card.index}")
    try:
        lock = locks.take(path)
    except RefusedError:
        return None
    try:
        path.chmod(0o666)  # other users' runs must be able to look
    except OSError:
        pass
    return lock


def is_claimed(card: HardwareGpu) -> bool:
    """Whether a run has it."""
    return locks.is_held(CLAIMS / (card.uuid or f"index-{card.index}"))


def _claims_folder() -> None:
    try:
        CLAIMS.mkdir(mode=0o1777, exist_ok=True)
        CLAIMS.chmod(0o1777)
    except OSError:
        pass  # another user's folder: its mode is right already


class Ticket:
    """A run's place in the queue: `queue/<order>-<run id>`; removing the file takes the run out of it."""

    def __init__(self, directory: RunDirectory, split: GpuSplitSection) -> None:
        self.folder = home() / "queue"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.directory = directory
        order = f"{time.time_ns():020d}"
        self.path = self.folder / f"{order}-{directory.id}"
        self.path.write_text(json.dumps({"gpus": split.gpus}))

    def earlier(self) -> list[object]:
        """What the living tickets before this one want."""
        wanted = []
        for path in sorted(self.folder.iterdir()):
            if path.name >= self.path.name or "-" not in path.name:
                continue
            run = self.directory.path.parent / path.name.partition("-")[2]
            if not locks.is_held(run / "supervisor.lock"):
                path.unlink(missing_ok=True)
                continue
            try:
                wanted.append(json.loads(path.read_text())["gpus"])
            except (OSError, ValueError, KeyError):
                continue
        return wanted

    @property
    def removed(self) -> bool:
        """Whether somebody took the run out of the queue."""
        return not self.path.exists()

    def leave(self) -> None:
        """Leave the queue."""
        self.path.unlink(missing_ok=True)


def may_go(earlier: Sequence[object], free: Sequence[HardwareGpu]) -> bool:
    """Whether no earlier ticket could start on the free cards (then it goes first)."""
    indices = {card.index for card in free} | {card.uuid for card in free}
    for wanted in earlier:
        if wanted == "auto" and free:
            return False
        if isinstance(wanted, list) and wanted and all(card in indices for card in wanted):
            return False
    return True


def try_cards(
    split: GpuSplitSection, ranked: Sequence[HardwareGpu], ticket: Ticket
) -> list[tuple[HardwareGpu, locks.Lock]]:
    """Claim what the run needs, if it is its turn and the cards are free; else nothing."""
    queue_lock = ticket.folder / "queue.lock"
    try:
        guard = locks.take(queue_lock)
    except RefusedError:
        return []
    with guard:
        free = [card for card in ranked if not is_claimed(card)]
        if not may_go(ticket.earlier(), free):
            return []
        wanted = list(ranked) if isinstance(split.gpus, list) else free[:1]
        taken: list[tuple[HardwareGpu, locks.Lock]] = []
        for card in sorted(wanted, key=lambda c: c.uuid):
            lock = claim(card)
            if lock is None:
                for _, other in taken:
                    other.release()
                return []
            taken.append((card, lock))
        order = {card.uuid: i for i, card in enumerate(wanted)}
        return sorted(taken, key=lambda item: order[item[0].uuid])
