"""Runs that wait for a GPU: a ticket each, in order; the first whose cards are free goes.

A ticket is `<home>/queue/<order>-<run id>`: renaming it moves the run, removing it takes the run out. Decisions are
made under one short lock. Nothing waits for the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from llmtui.core import words
from llmtui.core.errors import RefusedError
from llmtui.core.files import write_atomically
from llmtui.core.home import home
from llmtui.core.process import cards
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.events import HardwareGpu

_POLL_SECONDS: Final = 1.0


class Want(msgspec.Struct, frozen=True):
    """What a run waits for: one of some cards, or all of them; `needed` bytes on each, None when nobody knows."""

    cards: list[str]
    every: bool
    needed: int | None = None

    def choose(self, free: Sequence[HardwareGpu]) -> list[HardwareGpu]:
        """The cards it would take of those that no other run has; none when it has to wait."""
        usable = {card.uuid: card for card in free if has_room(card, self.needed)}
        mine = [usable[uuid] for uuid in self.cards if uuid in usable]
        if self.every:
            return mine if len(mine) == len(self.cards) else []
        return mine[:1]


def has_room(card: HardwareGpu, needed: int | None) -> bool:
    """Whether a run may start there beside what strangers hold.

    An idle card always will do, whatever the forecast says (micro-batches can get smaller); so does one about which
    too little is known.
    """
    if card.used is None or card.total is None or needed is None or card.used <= cards.BUSY_BYTES:
        return True
    return card.total - card.used >= needed


@dataclass(frozen=True)
class Turn:
    """The cards that a run was given, claimed."""

    cards: tuple[HardwareGpu, ...]
    locks: tuple[locks.Lock, ...]


class Ticket:
    """A run's place in the queue."""

    def __init__(self, directory: RunDirectory, want: Want) -> None:
        self.folder = home() / "queue"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._runs = directory.path.parent
        self._ending = f"-{directory.id}"
        self.leave()  # of an earlier life
        write_atomically(self.folder / f"{time.time_ns():020d}{self._ending}", msgspec.json.encode(want))

    def path(self) -> Path | None:
        """Where it is now (somebody may have moved it); None when it was removed."""
        return next((path for path in self._tickets() if _run_id(path) == self._ending[1:]), None)

    def _tickets(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if path.name[:1].isdigit())

    def earlier(self) -> list[Want]:
        """What the living runs before this one want; tickets of dead ones are removed."""
        own, wants = self.path(), []
        for path in self._tickets():
            if path == own:
                break
            if not locks.is_held(self._runs / _run_id(path) / "supervisor.lock"):
                path.unlink(missing_ok=True)
                continue
            with suppress(OSError, msgspec.DecodeError):
                wants.append(msgspec.json.decode(path.read_bytes(), type=Want))
        return wants

    def leave(self) -> None:
        """Leave the queue."""
        for path in self._tickets():
            if _run_id(path) == self._ending[1:]:
                path.unlink(missing_ok=True)


def _run_id(path: Path) -> str:
    return path.name.partition("-")[2]


def take_turn(ticket: Ticket, want: Want, ranked: Sequence[HardwareGpu]) -> Turn | None:
    """Claim what the run wants if it is its turn and the cards are free.

    Raises:
        OSError: the claims folder cannot be used.
    """
    try:
        guard = locks.take(ticket.folder / "queue.lock")
    except RefusedError:
        return None
    with guard:
        free = [card for card in ranked if not cards.is_claimed(card)]
        chosen = want.choose(free)
        if not chosen or any(earlier.choose(free) for earlier in ticket.earlier()):
            return None
        taken: dict[str, locks.Lock] = {}
        # In one order for everybody, so that two users' runs never hold half of what the other needs.
        for card in sorted(chosen, key=lambda c: c.uuid):
            lock = cards.claim(card)
            if lock is None:
                for held in taken.values():
                    held.release()
                return None
            taken[card.uuid] = lock
    return Turn(tuple(chosen), tuple(taken[card.uuid] for card in chosen))


def wait_for_turn(
    directory: RunDirectory, want: Want, look: Callable[[], Sequence[HardwareGpu]], *,
    say: Callable[[str], None], give_up: Callable[[], bool],
) -> Turn | None:  # fmt: skip
    """Wait until the run may have its cards.

    Args:
        look: the cards that would do, best first, as they are now.
        say: told why it waits, when that changes.
        give_up: asked between looks; true ends the waiting.

    Returns:
        The claimed cards; None when somebody removed the ticket or the waiting was given up.

    Raises:
        OSError: the claims folder cannot be used.
    """
    ticket, said = Ticket(directory, want), ""
    try:
        while ticket.path() is not None and not give_up():
            ranked = look()
            turn = take_turn(ticket, want, ranked)
            if turn is not None:
                return turn
            if (why := _why(want, ranked)) != said:
                said = why
                say(why)
            time.sleep(_POLL_SECONDS)
        return None
    finally:
        ticket.leave()


def _why(want: Want, ranked: Sequence[HardwareGpu]) -> str:
    """Why it waits, in words that do not change with every byte."""
    by_uuid = {card.uuid: card for card in ranked}
    wanted = [by_uuid[uuid] for uuid in want.cards if uuid in by_uuid]
    name = " and ".join(f"GPU {card.index}" for card in wanted) if want.every else "a GPU"
    claimed = [card for card in wanted if cards.is_claimed(card)]
    full = [card for card in wanted if not has_room(card, want.needed)]
    if full and not claimed and want.needed:
        held = ", ".join(f"GPU {card.index}" for card in full)
        return f"waiting for {name}: about {words.size(want.needed)} are needed, and other programs hold {held}"
    return f"waiting for {name}: other runs have {'it' if len(wanted) == 1 else 'them' if claimed else 'their turn'}"
