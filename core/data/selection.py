"""Which records of a stream are used, and in which order: `dataset.shuffle`, then `dataset.limit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

T = TypeVar("T")


class Selection:
    """The first rows, or the first of a shuffled order.

    Records keep the order of the file while they are read; `rank` says where each would stand.

    Args:
        rows: how many records there are; needed for shuffling alone.
    """

    def __init__(self, *, shuffle: bool, limit: int | None, seed: int, rows: int | None = None) -> None:
        self._limit = limit
        self._rank: Any = None
        if shuffle:
            import numpy

            assert rows is not None
            order = numpy.random.default_rng(seed).permutation(rows)
            self._rank = numpy.empty(rows, dtype=numpy.int64)
            self._rank[order] = numpy.arange(rows)

    def chosen(self, records: Iterable[T]) -> Iterator[tuple[int, T]]:
        """The records that are used, each with its place in the order."""
        if self._rank is None:
            yield from enumerate(islice(records, self._limit))
            return
        for rank, record in zip(self._rank.tolist(), records, strict=False):
            if self._limit is None or rank < self._limit:
                yield rank, record


def in_order(ranks: Any) -> NDArray[numpy.int64]:
    """The indices that put rows with these ranks (int64, unique) into order."""
    import numpy

    return numpy.argsort(numpy.frombuffer(ranks, dtype=numpy.int64), kind="stable")
