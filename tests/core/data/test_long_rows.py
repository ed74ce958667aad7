"""Rows longer than max_length: cut, dropped or split, with nothing invented and everything counted."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.data.rendered import Rendered
from llmtui.core.data.tokens import Counts, Piece, SpecialTokens, finish_rows

BEGIN, END = 100, 101
NONE = SpecialTokens((), END, frozenset({END}))
ONE = SpecialTokens((BEGIN,), END, frozenset({END}))
TWO = SpecialTokens((98, 99), END, frozenset({END}))
OnLong = Literal["cut", "drop", "split"]


def finished(
    ids: list[int], special: SpecialTokens, max_length: int, on_long: OnLong, trained: list[bool] | None = None
) -> tuple[list[Piece], Counts]:
    counts = Counts()
    item = Rendered("", ((0, 1),), append_eos=True)
    flags = trained if trained is not None else [True] * len(ids)
    return finish_rows(ids, flags, item, special, max_length, on_long, counts), counts


@pytest.mark.parametrize("on_long", ["cut", "drop", "split"])
@pytest.mark.parametrize("special", [NONE, ONE, TWO])
def test_a_row_that_fits_is_left_alone(special: SpecialTokens, on_long: OnLong) -> None:
    room = 4 + len(special.begin)
    (piece,), counts = finished([1, 2, 3], special, room, on_long)
    assert piece.ids == [*special.begin, 1, 2, 3, END]
    assert (piece.ended, counts) == (True, Counts())


def test_a_cut_row_has_no_end() -> None:
    (piece,), counts = finished([1, 2, 3, 4], ONE, 4, "cut")
    assert (piece.ids, piece.ended, counts) == ([BEGIN, 1, 2, 3], False, Counts(cut=1))


def test_a_row_that_is_too_long_by_its_end_token_is_cut_too() -> None:
    (piece,), counts = finished([1, 2, 3], ONE, 4, "cut")
    assert (piece.ids, piece.ended, counts.cut) == ([BEGIN, 1, 2, 3], False, 1)


def test_a_dropped_row_is_counted() -> None:
    assert finished([1, 2, 3, 4], ONE, 4, "drop") == ([], Counts(dropped={"too long": 1}))


def test_split_pieces_begin_each_and_only_the_last_ends() -> None:
    pieces, counts = finished([1, 2, 3, 4, 5, 6, 7], ONE, 4, "split")
    assert [piece.ids for piece in pieces] == [[BEGIN, 1, 2, 3], [BEGIN, 4, 5, 6], [BEGIN, 7, END]]
    assert [piece.ended for piece in pieces] == [False, False, True]
    assert counts == Counts(split=1)


def test_an_end_token_is_never_left_alone() -> None:
    pieces, _ = finished([1, 2, 3, 4, 5, 6], ONE, 4, "split")
    assert [piece.ids for piece in pieces] == [[BEGIN, 1, 2, 3], [BEGIN, 4, 5], [BEGIN, 6, END]]


def test_a_piece_without_a_trained_token_is_dropped_and_counted() -> None:
    trained = [False, False, False, False, True, True]
    pieces, counts = finished([1, 2, 3, 4, 5, 6], ONE, 4, "split", trained)
    assert [piece.ids for piece in pieces] == [[BEGIN, 4, 5], [BEGIN, 6, END]]
    assert counts == Counts(split=1, dropped={"no trained token": 1})


@pytest.mark.parametrize("on_long", ["cut", "split"])
def test_a_row_whose_prompt_fills_the_room_teaches_nothing_when_cut(on_long: OnLong) -> None:
    pieces, counts = finished([1, 2, 3, 4, 5], ONE, 4, on_long, [False] * 4 + [True])
    if on_long == "cut":
        assert (pieces, counts) == ([], Counts(dropped={"no trained token": 1}))
    else:
        assert [piece.ids for piece in pieces] == [[BEGIN, 4, 5, END]]


def test_one_token_has_nothing_to_be_predicted_from() -> None:
    assert finish_rows([1], [True], Rendered("", ((0, 1),), False), NONE, 8, "cut", counts := Counts()) == []
    assert counts.dropped == {"no trained token": 1}


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([NONE, ONE, TWO]), st.integers(2, 12),
)  # fmt: skip
def test_split_loses_no_token_and_invents_none(
    row: list[tuple[int, bool]], special: SpecialTokens, max_length: int
) -> None:
    ids, trained = [token for token, _ in row], [flag for _, flag in row]
    counts = Counts()
    item = Rendered("", ((0, 1),), append_eos=True)
    pieces = finish_rows(ids, trained, item, special, max_length, "split", counts)
    assert all(2 <= len(piece.ids) <= max_length and len(piece.ids) == len(piece.trained) for piece in pieces)
    dropped = counts.dropped.get("no trained token", 0)
    if len(ids) + 1 + len(special.begin) <= max_length or max_length <= len(special.begin):
        return
    bodies = [piece.ids[len(special.begin) :] for piece in pieces]
    assert all(tuple(piece.ids[: len(special.begin)]) == special.begin for piece in pieces)
    if not dropped:
        assert [token for body in bodies for token in body] == [*ids, END]
        assert [piece.ended for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert sum(body.count(END) for body in bodies) <= 1


def test_prepared_rows_are_split_and_counted(bpe: Any, tmp_path: Any) -> None:
    from tests.core.data.test_tokens import prepared

    rows = [("q", "", "a"), ("q", "", "long " * 300)]
    got = prepared(bpe, tmp_path, rows, max_length=120, on_long="split", template="text")
    lengths = [len(got.train[i]["input_ids"]) for i in range(len(got.train))]
    assert len(lengths) > 3
    assert max(lengths) == 120
    ends = [got.train[i]["input_ids"].count(bpe.eos_token_id) for i in range(len(got.train))]
    assert ends == [1] + [0] * (len(lengths) - 2) + [1]
