"""What a row says, as one hash: two rows are copies of each other when it is equal. Places do not count."""

from __future__ import annotations

from collections.abc import Iterator

import xxhash

from llmtui.core.data.rows import Example

HASH_BYTES = 16


def texts_of(example: Example) -> Iterator[str]:
    """All texts of a row, the label included."""
    if example.turns:
        yield from (turn.content for turn in example.turns)
    elif example.text is not None:
        yield example.text
    else:
        yield from (example.instruction, example.input, example.output)
    if example.label is not None:
        yield example.label


def content_hash(example: Example) -> bytes:
    """16 bytes (XXH3-128) over every text with its role and its length, so that no border can be mistaken."""
    state = xxhash.xxh3_128()
    if example.turns:
        parts = [part for turn in example.turns for part in (turn.role, turn.content)]
        kind = "turns"
    else:
        kind = "text" if example.text is not None else "row"
        parts = list(texts_of(example))
    for part in (kind, *parts, "label" if example.label is not None else ""):
        raw = part.encode("utf-8", "surrogatepass")
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
    return state.digest()
