"""Evaluation over all validation tokens, without keeping logits: memory stays flat."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from llmtui.core.data import TokenSet, collate
from llmtui.core.data.tokens import IGNORED
from llmtui.core.worker.failures import is_out_of_memory


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Mean loss per trained token, share of trained tokens predicted right (0..1), counts."""

    loss: float | None
    accuracy: float | None
    rows: int
    tokens: int

    @property
    def perplexity(self) -> float | None:
        """exp(loss); None when it overflows."""
        if self.loss is None or self.loss > 700:
            return None
        return math.exp(self.loss)


def evaluate(
    model: Any,
    rows: TokenSet,
    *,
    batch_size: int,
    pad_id: int,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
    on_progress: Callable[[int, int], None],
) -> Evaluated:
    """Loss and token accuracy over `rows`; halves the batch when memory runs out.

    Rows are taken longest first, so that what does not fit shows at once, and each exactly once.
    """
    lengths = rows.lengths
    order = sorted(range(len(rows)), key=lambda i: (-lengths[i], i))
    loss, right, tokens, done = 0.0, 0, 0, 0
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            while done < len(order):
                features = [rows[i] for i in order[done : done + batch_size]]
                try:
                    part = _batch(model, features, pad_id, device, autocast)
                except RuntimeError as error:
                    if not is_out_of_memory(error) or batch_size == 1:
                        raise
                    part = None
                if part is None:
                    batch_size = max(1, batch_size // 2)
                    torch.cuda.empty_cache()
                    continue
                loss, right, tokens = loss + part[0], right + part[1], tokens + part[2]
                done += len(features)
                on_progress(done, len(order))
    finally:
        model.train(was_training)
    mean = loss / tokens if tokens else math.nan
    return Evaluated(
        loss=mean if math.isfinite(mean) else None,
        accuracy=right / tokens if tokens else None,
        rows=done,
        tokens=tokens,
    )


def _batch(
    model: Any,
    features: list[dict[str, list[int]]],
    pad_id: int,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> tuple[float, int, int]:
    """Summed loss, right tokens and trained tokens of one batch."""
    batch = {name: torch.tensor(v, device=device) for name, v in collate(features, pad_id).items()}
    with autocast():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    wanted = batch["labels"][:, 1:].reshape(-1)
    learned = wanted != IGNORED
    predicted = logits[:, :-1].reshape(-1, logits.shape[-1])[learned].float()
    wanted = wanted[learned]
    total = functional.cross_entropy(predicted, wanted, reduction="sum")
    hits = (predicted.argmax(-1) == wanted).sum()
    return float(total), int(hits), int(wanted.numel())
