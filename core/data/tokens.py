"""Texts to token ids and label masks, stored flat."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from llmtui.core.data.templates import Rendered

IGNORED: Final = -100


class TokenSet:
    """Rows of token ids and labels in flat arrays; `set[i]` gives lists. Labels are -100 where not trained."""

    def __init__(self) -> None:
        self._ids = array("i")
        self._labels = array("i")
        self._starts = array("q", [0])

    def append(self, ids: Sequence[int], labels: Sequence[int]) -> None:
        """Add a row; both of equal length."""
        self._ids.extend(ids)
        self._labels.extend(labels)
        self._starts.append(len(self._ids))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        if index < 0 or index >= len(self):
            raise IndexError(index)
        begin, end = self._starts[index], self._starts[index + 1]
        return {"input_ids": self._ids[begin:end].tolist(), "labels": self._labels[begin:end].tolist()}

    @property
    def lengths(self) -> list[int]:
        """Tokens per row."""
        return [self._starts[i + 1] - self._starts[i] for i in range(len(self))]

    @property
    def tokens(self) -> int:
        """All tokens."""
        return len(self._ids)

    @property
    def trained_tokens(self) -> int:
        """Tokens that count in the loss."""
        return len(self._labels) - self._labels.count(IGNORED)

    def bytes(self) -> tuple[bytes, bytes, bytes]:
        """The arrays' bytes, for a hash."""
        return self._ids.tobytes(), self._labels.tobytes(), self._starts.tobytes()


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """What begins and ends a row; `begin` is None when the tokenizer puts nothing there."""

    begin: int | None
    end: int | None


@dataclass
class Counts:
    """What happened to rows while tokenising."""

    cut: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str) -> None:
        """Count one dropped row."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


def special_tokens(tokenizer: Any) -> SpecialTokens:
    """The beginning token the tokenizer adds by itself, and its end token."""
    begin = tokenizer.bos_token_id
    ids = tokenizer("a")["input_ids"]
    return SpecialTokens(begin if begin is not None and ids and ids[0] == begin else None, tokenizer.eos_token_id)


def encode_batch(tokenizer: Any, rendered: Sequence[Rendered], masked: bool) -> list[tuple[list[int], list[bool]]]:
    """Ids without special tokens, and for each whether it is trained.

    Args:
        masked: only tokens that overlap an answer's span are trained; otherwise all.
    """
    texts = [item.text for item in rendered]
    if not masked:
        batch = tokenizer(texts, add_special_tokens=False)["input_ids"]
        return [(list(ids), [True] * len(ids)) for ids in batch]
    if getattr(tokenizer, "is_fast", False):
        batch = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
        return [
            (list(ids), [_overlaps(begin, end, item.spans) for begin, end in offsets])
            for ids, offsets, item in zip(batch["input_ids"], batch["offset_mapping"], rendered, strict=True)
        ]
    return [_encode_slowly(tokenizer, item) for item in rendered]


def _overlaps(begin: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(begin < stop and end > start for start, stop in spans)


def _encode_slowly(tokenizer: Any, item: Rendered) -> tuple[list[int], list[bool]]:
    """Without offsets: the tokens of a text up to a boundary are those that the text cut there begins with too."""
    ids = list(tokenizer(item.text, add_special_tokens=False)["input_ids"])
    trained = [False] * len(ids)
    for start, stop in item.spans:
        first = _common(ids, tokenizer(item.text[:start], add_special_tokens=False)["input_ids"]) if start else 0
        last = len(ids)
        if stop < len(item.text):
            last = max(first, _common(ids, tokenizer(item.text[:stop], add_special_tokens=False)["input_ids"]))
        trained[first:last] = [True] * (last - first)
    return ids, trained


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def finish_row(
    ids: list[int], trained: list[bool], item: Rendered, special: SpecialTokens, max_length: int
) -> tuple[list[int], list[int], bool]:
    """Ids and labels with the special tokens exactly once each, and whether the row had to be cut.

    A cut row gets no invented end token. The end token is trained with the answer it ends.
    """
    begin, end = special.begin, special.end
    if begin is not None and (not ids or ids[0] != begin):
        ids, trained = [begin, *ids], [all(trained), *trained]
    if item.append_eos and end is not None and (not ids or ids[-1] != end):
        ids, trained = [*ids, end], [*trained, bool(item.spans)]
    cut = len(ids) > max_length
    labels = [token if learn else IGNORED for token, learn in zip(ids, trained, strict=True)]
    return ids[:max_length], labels[:max_length], cut
