"""What the model will be trained on, in numbers: rows by source and reason, lengths, padding, steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from llmtui.core.data.answers import Answers
from llmtui.core.data.epochs import steps_of
from llmtui.core.data.order import STRATEGIES, epoch_order
from llmtui.core.data.prepare import Prepared
from llmtui.core.data.token_store import CUT, ENDED, FIRST_TRAINED, StoredTokens
from llmtui.core.preset import Preset

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK: Final = 1 << 16
_BINS: Final = 16
_BINS_BEYOND: Final = 8


@dataclass(frozen=True)
class SideStatistics:
    """The training rows, or the validation rows, as they are fed: after cutting, dropping or splitting.

    `trained_tokens` are those that count in the loss; a row's first token never does, as nothing predicts it.
    """

    rows: int
    tokens: int
    trained_tokens: int
    rows_cut: int
    rows_without_end: int
    labels: dict[str, int]


@dataclass(frozen=True)
class SourceStatistics:
    """A source's rows, and how many of them could not be used as read, by reason."""

    name: str
    rows: int
    dropped: dict[str, int]


@dataclass(frozen=True)
class Bin:
    """Rows of `first` to `last` tokens; no bin holds lengths from both sides of `max_length`."""

    first: int
    last: int
    rows: int


@dataclass(frozen=True)
class Lengths:
    """Tokens per row before `max_length` is applied, over all rows that were tokenised."""

    rows: int
    mean: float
    median: int
    p95: int
    longest: int
    max_length: int
    longer: int
    """Rows longer than `max_length`."""
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Statistics:
    """Everything that `llmtui data` counts. Shares are 0..1."""

    rows_read: int
    dropped: dict[str, int]
    cleaned: dict[str, int]
    rows_split: int
    sources: tuple[SourceStatistics, ...]
    train: SideStatistics
    val: SideStatistics | None
    lengths: Lengths
    padding: dict[str, float]
    """Share of padding among the tokens of an epoch, by `training.train_sampling_strategy`."""
    strategy: str
    """The preset's own strategy."""
    tokens_per_epoch: int
    effective_batch: int
    steps_per_epoch: int
    total_steps: int
    epochs: float


def statistics(prepared: Prepared, preset: Preset) -> Statistics:
    """Count what was prepared, for the batches that this preset makes of it."""
    meta, training = prepared.meta, preset.training
    per_epoch, total = steps_of(preset, len(prepared.train))
    return Statistics(
        rows_read=prepared.rows_read,
        dropped=dict(prepared.dropped),
        cleaned=dict(meta.cleaned),
        rows_split=meta.rows_split,
        sources=tuple(SourceStatistics(s["name"], s["rows"], dict(s["dropped"])) for s in meta.sources),
        train=_side(prepared.train, prepared.train_answers),
        val=_side(prepared.val, prepared.answers) if prepared.val is not None else None,
        lengths=lengths_of(_whole_lengths(prepared), preset.dataset.max_length),
        padding=padding_shares(prepared.train.length_array(), preset),
        strategy=training.train_sampling_strategy,
        tokens_per_epoch=prepared.train.tokens,
        effective_batch=training.per_device_train_batch_size * training.gradient_accumulation_steps,
        steps_per_epoch=per_epoch,
        total_steps=total,
        epochs=total / per_epoch,
    )


def padding_shares(lengths: NDArray[Any], preset: Preset) -> dict[str, float]:
    """The share of padding by sampling strategy, over the batches of the first epoch as the Trainer would make them.

    Args:
        lengths: tokens of each training row, integers.
    """
    training = preset.training
    tokens = int(lengths.sum(dtype="int64"))
    width = preset.dataset.max_length if preset.dataset.padding == "max_length" else None
    shares: dict[str, float] = {}
    for strategy in STRATEGIES:
        order = epoch_order(
            lengths, strategy, batch=training.per_device_train_batch_size,
            accumulation=training.gradient_accumulation_steps, seed=training.seed, epoch=0,
        )  # fmt: skip
        shares[strategy] = 1 - tokens / _padded(lengths, order, training.per_device_train_batch_size, width)
    return shares


def _padded(lengths: NDArray[Any], order: NDArray[Any], size: int, width: int | None) -> int:
    """Tokens of an epoch with padding."""
    import numpy

    if width is not None:
        return width * len(order)
    total, together = 0, size * max(1, _CHUNK // size)
    for begin in range(0, len(order), together):  # in pieces, as for a million rows each copy counts
        part = lengths[order[begin : begin + together]]
        firsts = numpy.arange(0, len(part), size)
        widths = numpy.maximum.reduceat(part, firsts).astype(numpy.int64)
        total += int((widths * numpy.minimum(size, len(part) - firsts)).sum())
    return total


def lengths_of(lengths: NDArray[Any], max_length: int) -> Lengths:
    """The histogram and its figures.

    Args:
        lengths: tokens per row, integers, at least one row.
    """
    import numpy

    inorder = numpy.sort(lengths)
    rows, longest = len(inorder), int(inorder[-1])
    edges = _edges(longest, max_length)
    upto = [0, *numpy.searchsorted(inorder, edges, side="right").tolist()]
    bins = tuple(Bin(first + 1, last, upto[n + 1] - upto[n]) for n, (first, last) in enumerate(pairwise([0, *edges])))
    return Lengths(
        rows=rows, mean=float(lengths.mean()), median=int(inorder[rows // 2]), p95=int(inorder[int(0.95 * (rows - 1))]),
        longest=longest, max_length=max_length,
        longer=rows - int(numpy.searchsorted(inorder, max_length, side="right")), bins=bins,
    )  # fmt: skip


def _edges(longest: int, max_length: int) -> list[int]:
    """The last length of each bin; `max_length` is one when rows are longer, and the last bin takes all the rest."""
    if longest <= max_length:
        width = _round_up(max(1, longest) / _BINS)
        return [width * n for n in range(1, math.ceil(max(1, longest) / width) + 1)]
    width = _round_up(max_length / _BINS)
    edges = [*range(width, max_length, width), max_length]
    while len(edges) and edges[-1] < longest:
        beyond = len([edge for edge in edges if edge > max_length])
        edges.append(longest if beyond == _BINS_BEYOND - 1 else min(longest, edges[-1] + width))
    return edges


def _round_up(value: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50 … ; powers of two between, as lengths mostly are."""
    value = max(1, math.ceil(value))
    power: int = 10 ** (len(str(value)) - 1)
    decimal = next(n * power for n in (1, 2, 5, 10) if n * power >= value)
    return min(decimal, 1 << (value - 1).bit_length())


def _side(rows: StoredTokens, answers: Answers | None) -> SideStatistics:
    labels: dict[str, int] = {}
    if answers is not None:
        labels = {name: answers.labels.count(number) for number, name in enumerate(answers.names)}
    return SideStatistics(
        rows=len(rows), tokens=rows.tokens, trained_tokens=rows.trained_tokens - rows.flagged(FIRST_TRAINED),
        rows_cut=rows.flagged(CUT), rows_without_end=len(rows) - rows.flagged(ENDED), labels=labels,
    )  # fmt: skip


def _whole_lengths(prepared: Prepared) -> NDArray[Any]:
    import numpy

    lengths: NDArray[Any] = numpy.load(prepared.folder / "lengths.npy", allow_pickle=False)
    return lengths
