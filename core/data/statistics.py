"""What the model will be trained on, in numbers: rows by source and reason, lengths, padding, steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llmtui.core.data.answers import Answers
from llmtui.core.data.epochs import steps_of
from llmtui.core.data.order import STRATEGIES, epoch_order
from llmtui.core.data.prepare import Prepared
from llmtui.core.data.token_store import CUT, ENDED, FIRST_TRAINED, StoredTokens
from llmtui.core.preset import Preset

if TYPE_CHECKING:
    from llmtui.core.data.token_store import Indices

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
        padding=padding_shares(_lengths(prepared.train), preset),
        strategy=training.train_sampling_strategy,
        tokens_per_epoch=prepared.train.tokens,
        effective_batch=training.per_device_train_batch_size * training.gradient_accumulation_steps,
        steps_per_epoch=per_epoch,
        total_steps=total,
        epochs=total / per_epoch,
    )


def padding_shares(lengths: Indices, preset: Preset) -> dict[str, float]:
    """The share of padding by sampling strategy, over the batches of the first epoch as the Trainer would make them.

    Args:
        lengths: tokens of each training row.
    """
    import numpy

    dataset, training = preset.dataset, preset.training
    size = training.per_device_train_batch_size
    shares: dict[str, float] = {}
    firsts = numpy.arange(0, len(lengths), size)
    rows = numpy.minimum(size, len(lengths) - firsts)
    for strategy in STRATEGIES:
        order = epoch_order(
            lengths, strategy, batch=size, accumulation=training.gradient_accumulation_steps, seed=training.seed,
            epoch=0,
        )  # fmt: skip
        widths = numpy.maximum.reduceat(lengths[order], firsts)
        if dataset.padding == "max_length":
            widths = numpy.full_like(widths, dataset.max_length)
        shares[strategy] = 1 - int(lengths.sum()) / int((widths * rows).sum())
    return shares


def lengths_of(lengths: Indices, max_length: int) -> Lengths:
    """The histogram and its figures.

    Args:
        lengths: tokens per row, at least one row.
    """
    import numpy

    low, high = numpy.percentile(lengths, [50, 95], method="higher")
    longest = int(lengths.max())
    edges = _edges(longest, max_length)
    counts = numpy.histogram(lengths, bins=numpy.array([0, *edges]) + 0.5)[0].tolist()
    counts[0] += int((lengths < 1).sum())
    bins = tuple(Bin(a + 1, b, rows) for a, b, rows in zip([0, *edges], edges, counts, strict=False))
    return Lengths(
        rows=len(lengths), mean=float(lengths.mean()), median=int(low), p95=int(high), longest=longest,
        max_length=max_length, longer=int((lengths > max_length).sum()), bins=bins,
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
        rows=len(rows), tokens=rows.tokens, trained_tokens=rows.trained_tokens - rows.flagged(FIRST_TRAINED), rows_cut=rows.flagged(CUT),
        rows_without_end=len(rows) - rows.flagged(ENDED), labels=labels,
    )  # fmt: skip


def _whole_lengths(prepared: Prepared) -> Indices:
    import numpy

    lengths: Indices = numpy.load(prepared.folder / "lengths.npy", allow_pickle=False).astype(numpy.int64)
    return lengths


def _lengths(rows: StoredTokens) -> Indices:
    starts = rows.store.starts
    lengths: Indices = starts[rows.order + 1] - starts[rows.order]
    return lengths
