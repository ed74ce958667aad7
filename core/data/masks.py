"""From character spans to trained tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmtui.core.data.rendered import Rendered, Span


def trained_tokens(offsets: Sequence[Span], spans: Sequence[Span]) -> list[bool]:
    """Whether each token, given by its characters, is trained: one that straddles a border is.

    A token without characters (a blank put before a text) is trained inside a span.
    """
    if len(spans) == 1:  # as with most rows, and several times as fast
        ((start, stop),) = spans
        return [begin < stop and end > start if begin < end else start <= begin < stop for begin, end in offsets]
    return [
        any(begin < stop and end > start if begin < end else start <= begin < stop for start, stop in spans)
        for begin, end in offsets
    ]


def byte_pieces(tokenizer: Any) -> dict[int, int]:
    """The ids of `<0x00>` … `<0xFF>`, which stand for the bytes of characters a sentencepiece model does not know."""
    newline, unknown = tokenizer.convert_tokens_to_ids(["<0x0A>", "<0x0A no piece>"])
    if newline in (None, unknown):
        return {}
    numbers = tokenizer.convert_tokens_to_ids([f"<0x{byte:02X}>" for byte in range(256)])
    return {number: byte for byte, number in enumerate(numbers) if number not in (None, unknown)}


def exact_offsets(ids: Sequence[int], offsets: Sequence[Span], byte_of: Mapping[int, int]) -> list[Span]:
    """Offsets with every byte at its own character.

    A unigram model gives all bytes of a run of unknown characters the whole run's offsets, so a newline before an
    answer would look like a part of it.
    """
    exact = list(offsets)
    at = 0
    while at < len(ids):
        begin, end = offsets[at]
        last = at + 1
        if ids[at] in byte_of and end - begin > 1:
            while last < len(ids) and ids[last] in byte_of and offsets[last] == (begin, end):
                last += 1
            exact[at:last] = _spread(bytes(byte_of[i] for i in ids[at:last]), begin, end) or exact[at:last]
        at = last
    return exact


def _spread(run: bytes, begin: int, end: int) -> list[Span]:
    """The character of each byte; nothing when a normaliser has changed how many there are."""
    try:
        characters = run.decode("utf-8")
    except UnicodeDecodeError:
        return []
    if len(characters) != end - begin:
        return []
    return [(begin + n, begin + n + 1) for n, character in enumerate(characters) for _ in character.encode("utf-8")]


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
