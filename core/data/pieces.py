"""What each token id reads as, in bytes, so that rows can be shown without a tokenizer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

_BYTE: Final = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
_BLANK: Final = "\u2581"  # sentencepiece's


class TokenPiece(NamedTuple):
    """A token's bytes (a character may be spread over several tokens), and whether it is a special token."""

    raw: bytes
    special: bool


def token_pieces(tokenizer: Any, ids: Iterable[int]) -> dict[int, TokenPiece]:
    """The pieces of some ids."""
    wanted = sorted(ids)
    special = _special_ids(tokenizer)
    added = {int(number): str(token) for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()}
    read = _reader(tokenizer)
    pieces = {}
    for number, token in zip(wanted, tokenizer.convert_ids_to_tokens(wanted), strict=True):
        text = added.get(number)
        raw = text.encode("utf-8", "replace") if text is not None else read(str(token))
        pieces[number] = TokenPiece(raw, number in special)
    return pieces


def _special_ids(tokenizer: Any) -> set[int]:
    added = getattr(tokenizer, "added_tokens_decoder", {})
    marked = {int(number) for number, token in added.items() if getattr(token, "special", False)}
    return marked | {int(number) for number in tokenizer.all_special_ids}


def _reader(tokenizer: Any) -> Callable[[str], bytes]:
    """How the tokenizer writes bytes into the names of its tokens."""
    kinds = _decoders(tokenizer)
    if "ByteLevel" in kinds:
        return _byte_level
    if "WordPiece" in kinds:
        return lambda token: (token[2:] if token.startswith("##") else f" {token}").encode("utf-8", "replace")
    return _sentencepiece


def _decoders(tokenizer: Any) -> set[str]:
    """The names of the decoder's parts, for tokenizers of the `tokenizers` library."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return set()
    decoder = json.loads(backend.to_str()).get("decoder") or {}
    return {part.get("type", "") for part in (decoder, *decoder.get("decoders", ()))}


def _sentencepiece(token: str) -> bytes:
    byte = _BYTE.match(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(_BLANK, " ").encode("utf-8", "replace")


def _byte_level(token: str) -> bytes:
    table = _byte_of()
    try:
        return bytes(table[character] for character in token)
    except KeyError:
        return token.encode("utf-8", "replace")


@cache
def _byte_of() -> dict[str, int]:
    """GPT-2's writing of bytes as visible characters, read backwards (Radford et al. 2019, `bytes_to_unicode`)."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(visible)]
    table = {chr(byte): byte for byte in visible}
    return table | {chr(256 + place): byte for place, byte in enumerate(hidden)}
