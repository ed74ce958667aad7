"""The queue: in order, the first whose cards are free goes; moved by renaming, left by removing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from llmtui.core.process import cards, queue
from llmtui.core.process.queue import Ticket, Turn, Want, has_room, take_turn, wait_for_turn
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from tests.core.process.runs import new_run, until
from tests.core.process.test_cards import GIB, card

TWO = [card(0), card(1)]
ANY, FIRST, BOTH = Want(["GPU-0abc", "GPU-1abc"], False), Want(["GPU-0abc"], True), Want(["GPU-0abc", "GPU-1abc"], True)


@pytest.fixture
def living() -> Iterator[ExitStack]:
    """Locks of runs that live."""
    with ExitStack() as stack:
        yield stack


def living_run(stack: ExitStack) -> RunDirectory:
    directory = new_run()
    stack.enter_context(locks.take(directory.supervisor_lock))
    return directory


def test_the_first_in_the_queue_goes_first(living: ExitStack) -> None:
    first, second = Ticket(living_run(living), FIRST), Ticket(living_run(living), ANY)
    assert take_turn(second, ANY, TWO[:1]) is None
    turn = take_turn(first, FIRST, TWO[:1])
    assert turn is not None
    first.leave()
    assert take_turn(second, ANY, TWO[:1]) is None  # claimed
    other = take_turn(second, ANY, TWO)
    assert other is not None
    assert [c.index for c in other.cards] == [1]


def test_one_that_could_not_start_anyway_holds_nobody_up(living: ExitStack) -> None:
    busy = cards.claim(TWO[0])
    assert busy is not None
    Ticket(living_run(living), BOTH)
    assert take_turn(Ticket(living_run(living), ANY), ANY, TWO) is not None


def test_all_or_nothing_is_claimed_for_several_cards(living: ExitStack) -> None:
    busy = cards.claim(TWO[1])
    assert busy is not None
    ticket = Ticket(living_run(living), BOTH)
    assert take_turn(ticket, BOTH, TWO) is None
    assert not cards.is_claimed(TWO[0])
    busy.release()
    turn = take_turn(ticket, BOTH, TWO)
    assert turn is not None
    assert [c.index for c in turn.cards] == [0, 1]


def test_a_dead_runs_ticket_holds_nobody_up(living: ExitStack) -> None:
    dead = Ticket(new_run(), FIRST)
    assert take_turn(Ticket(living_run(living), FIRST), FIRST, TWO) is not None
    assert dead.path() is None


def test_a_ticket_is_moved_by_renaming_it(living: ExitStack) -> None:
    first, second = Ticket(living_run(living), FIRST), Ticket(living_run(living), FIRST)
    path = second.path()
    assert path is not None
    path.rename(path.with_name("0" * 20 + path.name[20:]))
    assert take_turn(first, FIRST, TWO) is None
    assert take_turn(second, FIRST, TWO) is not None


@pytest.mark.parametrize(
    ("used", "needed", "room"),
    [(0.5, None, True), (0.5, 40, True), (20, None, True), (20, 3, True), (20, 5, False), (1.5, 23, False)],
)
def test_strangers_memory_counts_when_the_need_is_known(used: float, needed: int | None, room: bool) -> None:
    assert has_room(card(0, used), None if needed is None else needed * GIB) is room


class Waiting:
    """A run that waits in a thread, and what it said."""

    def __init__(self, directory: RunDirectory, want: Want, look: object) -> None:
        self.said: list[str] = []
        self.turn: Turn | None = None
        self.given_up = False
        self._thread = threading.Thread(target=self._wait, args=(directory, want, look), daemon=True)
        self._thread.start()

    def _wait(self, directory: RunDirectory, want: Want, look: object) -> None:
        self.turn = wait_for_turn(
            directory, want, look, say=self.said.append, give_up=lambda: self.given_up  # type: ignore[arg-type]
        )  # fmt: skip

    def over(self) -> bool:
        return not self._thread.is_alive()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_POLL_SECONDS", 0.02)


def test_a_run_says_why_it_waits_and_goes_when_the_card_is_free(quick: None, living: ExitStack) -> None:
    busy = cards.claim(TWO[0])
    assert busy is not None
    waiting = Waiting(living_run(living), FIRST, lambda: TWO)
    until(lambda: waiting.said, "a word")
    assert waiting.said == ["waiting for GPU 0: other runs have it"]
    busy.release()
    until(waiting.over, "its turn")
    assert waiting.turn is not None
    assert [c.index for c in waiting.turn.cards] == [0]


def test_a_run_waits_until_strangers_have_left_room(quick: None, living: ExitStack) -> None:
    now = [card(0, 20)]
    waiting = Waiting(living_run(living), Want(["GPU-0abc"], False, 10 * GIB), lambda: list(now))
    until(lambda: waiting.said, "a word")
    assert waiting.said == ["waiting for a GPU: about 10 GiB are needed, and other programs hold GPU 0"]
    now[0] = card(0, 2)
    until(waiting.over, "its turn")
    assert waiting.turn is not None


@pytest.mark.parametrize("how", ["remove the ticket", "give up"])
def test_a_run_can_be_taken_out_of_the_queue(quick: None, living: ExitStack, llmtui_home: Path, how: str) -> None:
    busy = cards.claim(TWO[0])
    assert busy is not None
    waiting = Waiting(living_run(living), FIRST, lambda: TWO)
    until(lambda: waiting.said, "a word")
    if how == "give up":
        waiting.given_up = True
    else:
        (ticket,) = (llmtui_home / "queue").glob("[0-9]*")
        ticket.unlink()
    until(waiting.over, "the end of its waiting")
    assert waiting.turn is None
    assert not list((llmtui_home / "queue").glob("[0-9]*"))
