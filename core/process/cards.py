"""Which cards a run may have: asked for by index or UUID, or the idlest; and claiming them machine-wide."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.preset.schema import GpuSplitSection
from llmtui.core.runs import locks
from llmtui.core.runs.events import HardwareGpu
from llmtui.core.runs.locks import Lock

# One folder for all users of the machine: their homes do not see each other.
CLAIMS: Final = Path(os.environ.get("LLMTUI_CLAIMS", "/tmp/llmtui-claims"))
BUSY_BYTES: Final = 1 << 30  # more than this in use by others: not idle
_FRESH_SECONDS: Final = 3600.0


def visible(cards: Sequence[HardwareGpu], setting: str | None) -> list[HardwareGpu]:
    """The cards that `CUDA_VISIBLE_DEVICES` lets through; unset lets all through, empty or -1 none.

    Indices are PCI order. As CUDA does, an entry that means nothing hides what follows it.
    """
    if setting is None:
        return list(cards)
    chosen: list[HardwareGpu] = []
    for part in (p.strip() for p in setting.split(",")):
        match = [card for card in cards if _means(part, card)]
        if not match:
            break
        chosen += [card for card in match if card not in chosen]
    return chosen


def _means(part: str, card: HardwareGpu) -> bool:
    if part.isdecimal():
        return card.index == int(part)
    return bool(part) and card.uuid.startswith(part)


def candidates(split: GpuSplitSection, cards: Sequence[HardwareGpu], note: str) -> list[HardwareGpu]:
    """Cards that would do, best first; empty means the CPU.

    Raises:
        MachineError: the preset names a card that is not there or not visible.
    """
    if split.gpus == "none":
        return []
    usable = [card for card in visible(cards, os.environ.get("CUDA_VISIBLE_DEVICES")) if not card.lost]
    if split.gpus == "auto":
        return sorted(usable, key=lambda c: ((c.used or 0) > BUSY_BYTES, (c.used or 0) - (c.total or 0), c.index))
    named: list[HardwareGpu] = []
    for wanted in split.gpus:
        match = [c for c in usable if wanted in (c.index, c.uuid) and c not in named]
        if not match:
            raise MachineError(f"the preset asks for GPU {wanted}, which is not here: {_what_is_here(usable, note)}",
                               place="gpu_split.gpus",
                               hint="use gpus: auto, what llmtui gpus shows, or none for the CPU")  # fmt: skip
        named.append(match[0])
    return named


def _what_is_here(usable: Sequence[HardwareGpu], note: str) -> str:
    if usable:
        return "there is " + ", ".join(f"{card.index} ({card.name})" for card in usable)
    if os.environ.get("CUDA_VISIBLE_DEVICES") is not None:
        return f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']} hides every card"
    return note or "no card is visible"


def claim(card: HardwareGpu) -> Lock | None:
    """Claim a card machine-wide; None when another run has it. The claim dies with the processes that hold it.

    Raises:
        OSError: the claims folder cannot be used (a full disk, another user's folder of this name).
    """
    _claims_folder()
    path = _claim_file(card)
    while True:
        try:
            lock = locks.take(path)
        except RefusedError:
            return None
        with suppress(OSError):  # another user's file: it has its mode already
            path.chmod(0o666)
        if _is_the_file(path, lock):
            return lock
        lock.release()  # a cleaner removed it between opening and locking


def is_claimed(card: HardwareGpu) -> bool:
    """Whether a run has it."""
    try:
        return locks.is_held(_claim_file(card))
    except OSError:
        return False


class Claims:
    """Claims that are held, and kept from cleaners of /tmp, which remove what is ten days old."""

    def __init__(self) -> None:
        self._locks: list[Lock] = []
        self._fresh = time.monotonic()

    @property
    def held(self) -> tuple[Lock, ...]:
        """What is held."""
        return tuple(self._locks)

    def hold(self, taken: Sequence[Lock]) -> None:
        """Hold these from now on."""
        self._locks += taken

    def keep_fresh(self) -> None:
        """Called often; touches the files once an hour."""
        if time.monotonic() - self._fresh < _FRESH_SECONDS:
            return
        self._fresh = time.monotonic()
        for path in (CLAIMS, *(lock.path for lock in self._locks)):
            with suppress(OSError):
                os.utime(path)

    def release(self) -> None:
        """Give all back."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()


def _claim_file(card: HardwareGpu) -> Path:
    return CLAIMS / (card.uuid.replace("/", "-") or f"index-{card.index}")


def _claims_folder() -> None:
    with suppress(FileExistsError):
        CLAIMS.mkdir(mode=0o777)
    with suppress(PermissionError):
        CLAIMS.chmod(0o1777)  # past the umask; another user's folder has its mode already
    if not stat.S_ISDIR(CLAIMS.lstat().st_mode):
        raise NotADirectoryError(20, "it is no folder", str(CLAIMS))


def _is_the_file(path: Path, lock: Lock) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except FileNotFoundError:
        return False
