"""Which rows train and which validate. Copies of a row never stand on both sides.

Without copies these are the rows of `datasets.Dataset.train_test_split` with the same seed, in its order. With copies
the same order is walked and all copies of a row follow the first one met: to validation when they all still fit
there, else to training. So `val_size` is never exceeded and no row is lost. Where validation rows are given
(`dataset.val`), they stay as they are and their copies are taken out of training, as benchmarks are kept clean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llmtui.core.data.content import HASH_BYTES
from llmtui.core.errors import DataError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Indices = NDArray[numpy.int64]


@dataclass(frozen=True)
class Split:
    """Indices of the rows of each side, int64, in the order they are used; `moved` rows stand where they do because
    of a copy."""

    train: Indices
    val: Indices
    moved: int


def split_sizes(rows: int, val_size: float) -> tuple[int, int]:
    """Rows for training and validation. A share is rounded up to whole validation rows, as `datasets` does.

    Raises:
        DataError: nothing would be left to train on.
    """
    if val_size == 0:
        return rows, 0
    val = math.ceil(val_size * rows) if val_size < 1 else int(val_size)
    if val >= rows:
        raise DataError(
            f"dataset.val_size {val_size:g} takes {val} of {rows} rows and leaves none to train on",
            place="dataset.val_size", hint=f"use fewer than {rows} rows, or a share such as 0.1",
        )  # fmt: skip
    return rows - val, val


def split_indices(rows: int, val_size: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices of training and validation rows, in the order `datasets` gives them (PCG64 permutation of the seed)."""
    import numpy

    train, val = split_sizes(rows, val_size)
    if val == 0:
        return list(range(rows)), []
    order = numpy.random.default_rng(seed).permutation(rows).tolist()
    return order[val : val + train], order[:val]


def split_rows(hashes: bytes | bytearray, val_size: float, seed: int) -> Split:
    """Training and validation rows of one source.

    Args:
        hashes: `content_hash` of every row, one after another: 16 bytes each.

    Raises:
        DataError: nothing would be left to train on.
    """
    import numpy

    rows = len(hashes) // HASH_BYTES
    _, wanted = split_sizes(rows, val_size)
    if wanted == 0:
        return Split(numpy.arange(rows), numpy.arange(0), 0)
    order = numpy.random.default_rng(seed).permutation(rows)
    groups = _groups(hashes)
    if groups is None:
        return Split(order[wanted:], order[:wanted], 0)
    in_val = _whole_groups(order, groups, wanted)
    moved = int(numpy.count_nonzero(in_val[order[wanted:]]) + numpy.count_nonzero(~in_val[order[:wanted]]))
    return Split(order[~in_val[order]], order[in_val[order]], moved)


def without_copies(train: bytes | bytearray, val: bytes | bytearray) -> Indices:
    """The training rows that stand in no validation row, in their order. Arguments as for `split_rows`.

    Raises:
        DataError: there is none.
    """
    import numpy

    # Sorted lookups on the first half pick the few that the whole hash is compared for.
    firsts = numpy.unique(_halves(val)[:, 0])
    alike = numpy.isin(_halves(train)[:, 0], firsts)
    held_out = {bytes(val[at : at + HASH_BYTES]) for at in range(0, len(val), HASH_BYTES)} if alike.any() else set()
    for row in numpy.nonzero(alike)[0].tolist():
        alike[row] = bytes(train[row * HASH_BYTES : (row + 1) * HASH_BYTES]) in held_out
    kept = numpy.nonzero(~alike)[0]
    if len(train) and not len(kept):
        raise DataError("every training row is a validation row too", place="dataset.val",
                        hint="name other rows, or hold some out with dataset.val_size")  # fmt: skip
    return kept


def _halves(hashes: bytes | bytearray) -> Any:
    """rows × 2, uint64."""
    import numpy

    return numpy.frombuffer(hashes, dtype="<u8").reshape(-1, 2)


def _groups(hashes: bytes | bytearray) -> Any:
    """For each row the number of its content, int64; None when no two rows are equal."""
    import numpy

    halves = _halves(hashes)
    firsts = numpy.sort(halves[:, 0])
    if not (firsts[1:] == firsts[:-1]).any():
        return None
    order = numpy.lexsort((halves[:, 1], halves[:, 0]))
    ranked = halves[order]
    new = numpy.ones(len(order), dtype=bool)
    new[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    groups = numpy.empty(len(order), dtype=numpy.int64)
    groups[order] = numpy.cumsum(new) - 1
    return groups


def _whole_groups(order: Any, groups: Any, wanted: int) -> Any:
    """For each row whether it validates, bool."""
    import numpy

    sizes = numpy.bincount(groups)
    chosen = numpy.zeros(len(sizes), dtype=bool)
    met = numpy.zeros(len(sizes), dtype=bool)
    room = wanted
    for group in groups[order]:
        if not room:
            break
        if met[group]:
            continue
        met[group] = True
        if sizes[group] <= room:
            chosen[group] = True
            room -= int(sizes[group])
    return chosen[groups]
