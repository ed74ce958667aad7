"""Which rows train and which validate: the same rows as `datasets.Dataset.train_test_split` with the same seed."""

from __future__ import annotations

import math

from llmtui.core.errors import DataError


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
