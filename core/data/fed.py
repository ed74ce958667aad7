"""What is fed to the model, as one hash: input ids and labels of the first batches, as the Trainer takes them.

The worker hashes what it feeds, `llmtui data` what it says will be fed; equal hashes mean that nothing lies between.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import xxhash

from llmtui.core.data.batches import collate
from llmtui.core.data.epochs import batches_of
from llmtui.core.data.order import batches, epoch_order
from llmtui.core.data.prepare import Prepared
from llmtui.core.data.tokens import IGNORED
from llmtui.core.preset import Preset

FIRST_BATCHES: Final = 100


class BatchHash:
    """XXH3-128 over batches: for each the number of rows and columns, then ids and labels, as int64.

    Args:
        limit: how many batches count; what comes after is left out.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._state = xxhash.xxh3_128()
        self.batches = 0

    @property
    def complete(self) -> bool:
        """Whether all that count are there."""
        return self.batches >= self._limit

    def add(self, ids: Sequence[Sequence[int]], labels: Sequence[Sequence[int]]) -> None:
        """The next batch: both rows × columns."""
        if self.complete:
            return
        self.batches += 1
        self._state.update(array("q", (len(ids), len(ids[0]))).tobytes())
        for rows in (ids, labels):
            for row in rows:
                self._state.update(array("q", row).tobytes())

    def hexdigest(self) -> str:
        """The hash of what was added so far."""
        return str(self._state.hexdigest())


def mask_first(labels: list[list[int]]) -> None:
    """A row's first token is predicted from nothing: the loss never sees its label.

    So that the mean is over the trained tokens alone, the count that the Trainer divides by must not either
    (transformers 5.17 counts it).
    """
    for row in labels:
        row[0] = IGNORED


def first_batches(prepared: Prepared, preset: Preset) -> BatchHash:
    """The hash that the worker will log for this preset on one process.

    Returns:
        The hash over the first 100 batches, or over all when there are fewer.
    """
    import numpy

    training, rows = preset.training, prepared.train
    made = BatchHash(min(FIRST_BATCHES, batches_of(preset, len(rows))))
    lengths = numpy.array(rows.lengths, dtype=numpy.int64)
    width = preset.dataset.max_length if preset.dataset.padding == "max_length" else None
    epoch = 0
    while not made.complete:
        order = epoch_order(
            lengths, training.train_sampling_strategy, batch=training.per_device_train_batch_size,
            accumulation=training.gradient_accumulation_steps, seed=training.seed, epoch=epoch,
        )  # fmt: skip
        for taken in batches(order, training.per_device_train_batch_size):
            if made.complete:
                break
            batch = collate([rows[int(row)] for row in taken], prepared.meta.pad_id, width)
            mask_first(batch["labels"])
            made.add(batch["input_ids"], batch["labels"])
        epoch += 1
    return made
