"""The split: the rows that `datasets` would choose, and never a copy on both sides."""

from __future__ import annotations

import datasets
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llmtui.core.data.split import split_rows, split_sizes, without_copies
from llmtui.core.errors import DataError


def hashes(contents: list[int]) -> bytes:
    """A 16-byte hash per row; contents that differ by a multiple of 100 share its first half."""
    return b"".join((c % 100).to_bytes(8, "little") + c.to_bytes(8, "little") for c in contents)


@pytest.mark.parametrize("val_size", [1, 7, 0.2, 0.333])
@pytest.mark.parametrize("seed", [0, 42])
def test_without_copies_it_is_the_split_of_datasets(val_size: float, seed: int) -> None:
    wanted = datasets.Dataset.from_dict({"n": list(range(61))}).train_test_split(val_size, seed=seed)
    got = split_rows(hashes(list(range(61))), val_size, seed)
    assert got.train.tolist() == wanted["train"]["n"]
    assert got.val.tolist() == wanted["test"]["n"]
    assert got.moved == 0


def test_the_published_recipe_holds_out_2000_of_15015_rows() -> None:
    got = split_rows(hashes(list(range(15015))), 2000, 42)
    assert (len(got.train), len(got.val)) == (13015, 2000)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=60), st.integers(1, 59), st.integers(0, 5))
def test_copies_of_a_row_stand_on_one_side(contents: list[int], val_size: int, seed: int) -> None:
    assume(val_size < len(contents))
    contents = [content * 100 for content in contents]  # whole hashes must be compared
    got = split_rows(hashes(contents), val_size, seed)
    train, val = got.train.tolist(), got.val.tolist()
    assert sorted(train + val) == list(range(len(contents))), "no row is lost"
    assert not {contents[row] for row in train} & {contents[row] for row in val}
    assert len(val) <= val_size
    assert train
    again = split_rows(hashes(contents), val_size, seed)
    assert (again.train.tolist(), again.val.tolist(), again.moved) == (train, val, got.moved)


def test_the_size_is_kept_as_long_as_whole_rows_fit() -> None:
    got = split_rows(hashes([n // 2 for n in range(100)]), 20, 3)
    assert len(got.val) == 20
    assert got.moved > 0
    got = split_rows(hashes([1] * 10), 3, 3)
    assert len(got.val) == 0
    assert got.moved == 3


def test_rows_that_stay_keep_the_order_of_datasets() -> None:
    plain = split_rows(hashes(list(range(50))), 10, 8)
    pair = [int(plain.val[0]), int(plain.train[5])]
    contents = list(range(50))
    contents[pair[1]] = contents[pair[0]]
    got = split_rows(hashes(contents), 10, 8)
    assert got.val.tolist() == [*plain.val[:9].tolist(), pair[1]], "the copy takes the place of the last"
    assert got.moved == 2


def test_copies_of_given_validation_rows_leave_training() -> None:
    kept = without_copies(hashes([5, 7, 105, 5, 9, 205]), hashes([5, 205, 11]))
    assert kept.tolist() == [1, 2, 4]
    assert without_copies(hashes([1, 2]), hashes([3])).tolist() == [0, 1]
    assert without_copies(hashes([1, 2]), b"").tolist() == [0, 1]
    with pytest.raises(DataError, match="every training row"):
        without_copies(hashes([1, 2]), hashes([2, 1]))


def test_holding_out_everything_is_refused() -> None:
    with pytest.raises(DataError, match="takes 3 of 3 rows"):
        split_sizes(3, 3)
    assert split_rows(hashes([1, 2, 3]), 0, 1).train.tolist() == [0, 1, 2]
