"""Rows to batches on the CPU, with the tokens of each batch counted before they leave for the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from llmtui.core.data import collate
from llmtui.core.data.fed import BatchHash, mask_first
from llmtui.core.data.order import grouping_seed
from llmtui.core.data.tokens import IGNORED


class CountingCollator:
    """Pads a batch and remembers (real tokens, trained tokens) of each batch in the order they are made."""

    def __init__(self, pad_id: int, pad_to: int | None, first: int = 0) -> None:
        self._pad_id = pad_id
        self._pad_to = pad_to
        self._counts: deque[tuple[int, int]] = deque()
        self.hash = BatchHash(first)
        """Over the first batches, as many as `first` says."""

    def __call__(self, features: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        batch = collate(features, self._pad_id, self._pad_to)
        mask_first(batch["labels"])
        self.hash.add(batch["input_ids"], batch["labels"])
        tokens = sum(len(f["input_ids"]) for f in features)
        trained = sum(len(labels) - labels.count(IGNORED) for labels in batch["labels"])
        self._counts.append((tokens, trained))
        return {name: torch.tensor(rows, dtype=torch.long) for name, rows in batch.items()}

    def take(self, batches: int) -> tuple[int, int]:
        """The counts of the next batches, added up."""
        taken = [self._counts.popleft() for _ in range(min(batches, len(self._counts)))]
        return sum(t for t, _ in taken), sum(t for _, t in taken)


class GroupedByLength(torch.utils.data.Sampler[int]):
    """Rows of like length together, in an order that depends on seed and epoch alone.

    Transformers' `LengthGroupedSampler` draws from the global generator, so that a resumed run would see another order;
    the grouping itself is transformers'.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int, trainer: Any) -> None:
        super().__init__()
        self._lengths = list(lengths)
        self._batch = batch
        self._seed = seed
        self._trainer = trainer

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        from transformers.trainer_pt_utils import get_length_grouped_indices

        epoch = int(self._trainer.state.epoch or 0)
        generator = torch.Generator().manual_seed(grouping_seed(self._seed, epoch))
        return iter(get_length_grouped_indices(self._lengths, self._batch, generator=generator))
