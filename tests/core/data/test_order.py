"""The order of rows that is worked out without torch is the one that torch, accelerate and transformers draw."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from llmtui.core.data.order import batches, epoch_order, grouping_seed, shuffled

ROWS = (0, 1, 2, 3, 17, 1000, 70_000)


def drawn(rows: int, seed: int) -> list[int]:
    import torch

    order: list[int] = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).tolist()
    return order


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, 2**32 + 5, 42 * 1_000_003 + 3])
def test_a_shuffled_order_is_torchs(seed: int) -> None:
    for rows in ROWS:
        assert shuffled(rows, seed).tolist() == drawn(rows, seed)


@pytest.mark.parametrize("rows", [1, 3, 16, 63, 64, 999, 5003])
@pytest.mark.parametrize("size", [1, 3, 8])
def test_rows_of_like_length_are_grouped_as_transformers_does(rows: int, size: int) -> None:
    import torch
    from transformers.trainer_pt_utils import get_length_grouped_indices

    lengths = numpy.random.default_rng(rows).integers(1, 40, rows)
    for epoch in (0, 1):
        generator = torch.Generator().manual_seed(grouping_seed(7, epoch))
        wanted = get_length_grouped_indices(lengths.tolist(), size, generator=generator)
        got = epoch_order(lengths, "group_by_length", batch=size, accumulation=1, seed=7, epoch=epoch)
        assert got.tolist() == wanted


def test_batches_follow_the_order_and_the_last_is_short() -> None:
    order: Any = numpy.arange(5)
    assert [batch.tolist() for batch in batches(order, 2)] == [[0, 1], [2, 3], [4]]
