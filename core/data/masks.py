"""From character spans to trained tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmtui.core.data.rendered import Rendered, Span


def overlaps(begin: int, end: int, spans: Sequence[Span]) -> bool:
    """Whether a token of these characters is trained: one that straddles a border is.

    A token without characters (a byte of a longer character's, a blank put before a text) is trained inside a span.
    """
    if begin == end:
        return any(start <= begin < stop for start, stop in spans)
    return any(begin < stop and end > start for start, stop in spans)


def encode_slowly(tokenizer: Any, item: Rendered) -> tuple[list[int], list[bool]]:
    """Ids and trained flags without offsets: a border stands where the text cut there has other tokens."""
    ids = list(tokenizer(item.text, add_special_tokens=False)["input_ids"])
    trained = [False] * len(ids)
    for start, stop in item.spans:
        first, _ = _shared(tokenizer, ids, item.text, start)
        last, straddled = _shared(tokenizer, ids, item.text, stop)
        last = max(first, min(len(ids), last + straddled))
        trained[first:last] = [True] * (last - first)
    return ids, trained


def _shared(tokenizer: Any, ids: Sequence[int], text: str, border: int) -> tuple[int, bool]:
    """How many tokens stand wholly before a border, and whether the next one straddles it."""
    if border <= 0:
        return 0, False
    if border >= len(text):
        return len(ids), False
    before = tokenizer(text[:border], add_special_tokens=False)["input_ids"]
    count = 0
    for whole, part in zip(ids, before, strict=False):
        if whole != part:
            return count, True
        count += 1
    return count, count < len(before)
