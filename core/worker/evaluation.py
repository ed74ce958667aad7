"""Evaluation over all validation tokens, without keeping logits: memory stays flat."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn import functional

from llmtui.core.data import TokenRows, collate
from llmtui.core.data.tokens import IGNORED
from llmtui.core.worker.failures import is_out_of_memory

_POSITIONS: Final = 2048  # logits turned to float32 at once


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Mean loss per trained token, share of trained tokens predicted right (0..1), counts."""

    loss: float | None
    accuracy: float | None
    rows: int
    tokens: int
    batch_size: int

    @property
    def perplexity(self) -> float | None:
        """exp(loss); None when it overflows."""
        if self.loss is None or self.loss > 700:
            return None
        return math.exp(self.loss)


def evaluate(
    model: Any,
    rows: TokenRows,
    *,
    batch_size: int,
    pad_id: int,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
    on_progress: Callable[[int, int], None],
) -> Evaluated:
    """Loss and token accuracy over `rows`; halves the batch when memory runs out.

    Rows are taken longest first, so that what does not fit shows at once, and each exactly once. Numbers stay on the
    device until the end. Draws no random numbers.
    """
    lengths = rows.lengths
    order = sorted(range(len(rows)), key=lambda i: (-lengths[i], i))
    sums = torch.zeros(3, dtype=torch.float64, device=device)  # loss, right tokens, tokens
    done = 0
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            while done < len(order):
                features = [rows[i] for i in order[done : done + batch_size]]
                part = _attempt(model, features, pad_id, device, autocast, last=batch_size == 1)
                if part is None:
                    batch_size = max(1, batch_size // 2)
                    if device.type == "cuda":
                        torch.cuda.empty_cache()
                    continue
                sums += part
                done += len(features)
                on_progress(done, len(order))
    finally:
        model.train(was_training)
    loss, right, tokens = sums.tolist()
    mean = loss / tokens if tokens else math.nan
    return Evaluated(
        loss=mean if math.isfinite(mean) else None,
        accuracy=right / tokens if tokens else None,
        rows=done,
        tokens=int(tokens),
        batch_size=batch_size,
    )


def _attempt(
    model: Any, features: list[dict[str, list[int]]], pad_id: int, device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]], last: bool,
) -> torch.Tensor | None:  # fmt: skip
    """The sums of one batch; None when it does not fit and a smaller one may."""
    try:
        return _batch(model, features, pad_id, device, autocast)
    except RuntimeError as error:
        if last or not is_out_of_memory(error):
            raise
    return None


def _batch(
    model: Any, features: list[dict[str, list[int]]], pad_id: int, device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> torch.Tensor:  # fmt: skip
    """Summed loss, right tokens and trained tokens of one batch, float64 [3] on the device."""
    batch = {name: torch.tensor(v, device=device) for name, v in collate(features, pad_id).items()}
    with autocast():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits
    # Position i predicts token i + 1, so the last position and the first label have no partner.
    flat, wanted = logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()
    places = (wanted != IGNORED).nonzero().squeeze(1)
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    for some in torch.split(places, _POSITIONS):
        predicted, labels = flat[some].float(), wanted[some]
        sums[0] += functional.cross_entropy(predicted, labels, reduction="sum").double()
        sums[1] += (predicted.argmax(-1) == labels).sum()
    sums[2] = places.numel()
    return sums
