"""The order in which the Trainer takes rows, without torch: the same numbers from the same generator.

torch's generator on the CPU is the Mersenne Twister as numpy's `RandomState` seeds it, and `torch.randperm` a
Fisher-Yates shuffle with one 32-bit draw a step (ATen's TensorFactories.cpp, fewer than 2^32 / 20 rows).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Lengths = NDArray[numpy.int32] | NDArray[numpy.int64]
    Indices = NDArray[numpy.int32]

Strategy = Literal["random", "sequential", "group_by_length"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("random", "sequential", "group_by_length")
_CHUNK: Final = 1 << 16
_MOST_BATCHES_TOGETHER: Final = 50


def grouping_seed(seed: int, epoch: int) -> int:
    """What seeds the order of an epoch under `group_by_length`."""
    return seed * 1_000_003 + epoch


def epoch_order(
    lengths: Lengths, strategy: Strategy, *, batch: int, accumulation: int, seed: int, epoch: int
) -> Indices:
    """The rows' indices in the order of an epoch.

    Args:
        lengths: tokens per row.
        batch: rows per device and micro-step.
        accumulation: micro-steps per optimizer step; lengths are grouped over all of them.
        seed: `training.seed`.
        epoch: from 0.
    """
    import numpy

    if strategy == "sequential":
        return numpy.arange(len(lengths), dtype=numpy.int32)
    if strategy == "random":  # accelerate's SeedableRandomSampler
        return shuffled(len(lengths), seed + epoch)
    return _grouped(lengths, batch * accumulation, shuffled(len(lengths), grouping_seed(seed, epoch)))


def batches(order: Indices, size: int) -> Iterator[Indices]:
    """The rows of each batch; the last may be short."""
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def shuffled(rows: int, seed: int) -> Indices:
    """`torch.randperm(rows)` of a generator with this seed."""
    import numpy

    order = array("i", range(rows))
    draws = numpy.random.RandomState(seed & 0xFFFFFFFF)
    for begin in range(0, rows - 1, _CHUNK):
        end = min(begin + _CHUNK, rows - 1)
        drawn = draws.randint(0, 1 << 32, end - begin, dtype=numpy.uint32)
        others = numpy.arange(begin, end) + drawn.astype(numpy.int64) % (rows - numpy.arange(begin, end))
        for at, other in enumerate(others.tolist(), begin):
            order[at], order[other] = order[other], order[at]
    return numpy.frombuffer(order, dtype=numpy.int32) if rows else numpy.empty(0, dtype=numpy.int32)


def _grouped(lengths: Lengths, size: int, order: Indices) -> Indices:
    """transformers' `get_length_grouped_indices`: sorted within groups of up to 50 batches, the longest row first."""
    import numpy

    if not len(order):
        return order
    together = size * (min(len(order) // (size * 4), _MOST_BATCHES_TOGETHER) or 1)
    groups = [order[begin : begin + together] for begin in range(0, len(order), together)]
    grouped = numpy.concatenate([group[numpy.argsort(-lengths[group], kind="stable")] for group in groups])
    longest = int(numpy.argmax(lengths[grouped[::together]])) * together
    grouped[[0, longest]] = grouped[[longest, 0]]
    return grouped
