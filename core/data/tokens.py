"""Texts to token ids and label masks, stored flat."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from llmtui.core.data.masks import byte_pieces, encode_slowly, exact_offsets, trained_tokens
from llmtui.core.data.rendered import Rendered, Span
from llmtui.core.errors import DataError

IGNORED: Final = -100


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """What begins and ends a row.

    Args:
        begin: what the tokenizer puts before every text by itself; mostly one id or none.
        end: its end token; None when it has none.
        ends: every token that may end a turn, the end token included.
    """

    begin: tuple[int, ...]
    end: int | None
    ends: frozenset[int]


@dataclass
class Counts:
    """What happened to rows while tokenising: `cut`, `split` and `ends_inside` (the data writes the end token in the
    middle of a text) count rows, `dropped` rows or pieces by reason; `lengths` are the tokens of each row as a whole.
    """

    cut: int = 0
    split: int = 0
    ends_inside: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("i"), compare=False)

    def drop(self, reason: str) -> None:
        """Count one dropped row."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def sentences(self, max_length: int) -> list[str]:
        """What is worth saying about it, besides what is dropped."""
        said = {
            f"{self.cut} rows are cut at {max_length} tokens; a cut row has no end token": self.cut,
            f"{self.split} rows are split at {max_length} tokens; only their last pieces end": self.split,
            f"{self.ends_inside} rows have the end token inside their text; a model learns to stop there":
                self.ends_inside,
        }  # fmt: skip
        return [sentence for sentence, count in said.items() if count]


class Piece(NamedTuple):
    """One row to train on: ids, for each whether it is trained, and whether the row's end token is there."""

    ids: list[int]
    trained: list[bool]
    ended: bool


def special_tokens(tokenizer: Any) -> SpecialTokens:
    """What the tokenizer adds before a text by itself, and its end tokens."""
    end = tokenizer.eos_token_id
    return SpecialTokens(_added_before(tokenizer), end, frozenset(_enders(tokenizer)))


def turn_enders(tokenizer: Any) -> list[str]:
    """The texts of tokens that may end a turn: the end token, `<|im_end|>` and their like."""
    return list(_enders(tokenizer).values())


def _enders(tokenizer: Any) -> dict[int, str]:
    """Special tokens that no text begins with, by id; the end token in any case."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {int(number): str(token) for number, token in added.items() if getattr(token, "special", False)}
    never = (tokenizer.bos_token_id, tokenizer.pad_token_id, getattr(tokenizer, "unk_token_id", None))
    enders = {number: text for number, text in special.items() if number not in never and text.strip()}
    if tokenizer.eos_token_id is not None:
        enders[int(tokenizer.eos_token_id)] = str(tokenizer.eos_token)
    return enders


def _added_before(tokenizer: Any) -> tuple[int, ...]:
    whole = list(tokenizer("a")["input_ids"])
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    for at in range(len(whole) - len(plain) + 1):
        if plain and whole[at : at + len(plain)] == plain:
            return tuple(whole[:at])
    return tuple(whole[:1]) if whole[:1] == [tokenizer.bos_token_id] else ()


def encode_batch(tokenizer: Any, rendered: Sequence[Rendered], masked: bool) -> list[tuple[list[int], list[bool]]]:
    """Ids without special tokens, and for each whether it is trained.

    Args:
        masked: only tokens that overlap an answer's span are trained; otherwise all.

    Raises:
        DataError: a text that the tokenizer refuses, with its row.
    """
    try:
        return _encode(tokenizer, rendered, masked)
    except DataError:
        raise
    except Exception:
        for item in rendered:
            try:
                _encode(tokenizer, [item], masked)
            except Exception as error:
                raise DataError(f"the tokenizer refuses this row's text: {error}", place=item.place,
                                hint="look for broken characters in it") from error  # fmt: skip
        raise


def _encode(tokenizer: Any, rendered: Sequence[Rendered], masked: bool) -> list[tuple[list[int], list[bool]]]:
    texts = [item.text for item in rendered]
    if not texts:
        return []
    backend = _backend(tokenizer)
    if not masked:
        if backend is not None:
            made = [row.ids for row in backend.encode_batch_fast(texts, add_special_tokens=False)]
        else:  # verbose: a row longer than the tokenizer's own limit is our on_long's business, not a line on stderr
            made = [list(ids) for ids in tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]]
        return [(ids, [True] * len(ids)) for ids in made]
    if backend is not None:
        pairs = [(row.ids, row.offsets) for row in backend.encode_batch(texts, add_special_tokens=False)]
    elif getattr(tokenizer, "is_fast", False):
        batch = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        pairs = list(zip(batch["input_ids"], batch["offset_mapping"], strict=True))
    else:
        return [encode_slowly(tokenizer, item) for item in rendered]
    byte_of = byte_pieces(tokenizer)
    return [_flagged(list(ids), places, item, byte_of) for (ids, places), item in zip(pairs, rendered, strict=True)]


def _backend(tokenizer: Any) -> Any:
    """The `tokenizers.Tokenizer` inside: asked directly it takes about half the time."""
    if not getattr(tokenizer, "is_fast", False):
        return None
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer)
    own_way = kind.__call__ is not PreTrainedTokenizerFast.__call__ or (
        kind._encode_plus is not PreTrainedTokenizerFast._encode_plus
    )
    if own_way:
        return None
    backend = tokenizer.backend_tokenizer
    # What transformers sets before every call.
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = bool(getattr(tokenizer, "split_special_tokens", False))
    return backend


def _flagged(
    ids: list[int], offsets: Sequence[Span], item: Rendered, byte_of: dict[int, int]
) -> tuple[list[int], list[bool]]:
    if byte_of:
        offsets = exact_offsets(ids, offsets, byte_of)
    return ids, trained_tokens(offsets, item.spans)


def with_special_tokens(
    ids: list[int], trained: list[bool], item: Rendered, special: SpecialTokens
) -> tuple[list[int], list[bool]]:
    """Begin and end tokens exactly once each, whatever template and data wrote. The end is trained with its answer."""
    begin, end = special.begin, special.end
    ids, trained = list(ids), list(trained)
    while len(begin) == 1 and ids[:2] == [begin[0]] * 2:
        del ids[0], trained[0]
    if begin and tuple(ids[: len(begin)]) != begin:
        ids, trained = [*begin, *ids], [all(trained)] * len(begin) + trained
    while end is not None and ids[-2:] == [end, end]:
        del ids[-2], trained[-2]
    if item.append_eos and end is not None and (not ids or ids[-1] != end):
        ids, trained = [*ids, end], [*trained, bool(item.spans)]
    return ids, trained


def finish_rows(
    ids: list[int], trained: list[bool], item: Rendered, special: SpecialTokens, max_length: int,
    on_long: Literal["cut", "drop", "split"], counts: Counts,
) -> list[Piece]:  # fmt: skip
    """The rows that an encoded text becomes: none when it is dropped, several when it is split; all is counted.

    A cut row gets no invented end token. Pieces of a split row begin with the begin token each (models are never
    asked anything without it), and only the last one ends.

    Args:
        ids: without special tokens, as `encode_batch` gives them.
        max_length: tokens per row at most.
        counts: what is cut, split and dropped is added to it.
    """
    ids, trained = with_special_tokens(ids, trained, item, special)
    counts.lengths.append(len(ids))
    counts.ends_inside += item.append_eos and special.end in ids[len(special.begin) : -1]
    if len(ids) <= max_length:
        pieces = [Piece(ids, trained, _ends(ids, special))]
    elif on_long == "drop":
        counts.drop("too long")
        return []
    elif on_long == "cut":
        pieces = [Piece(ids[:max_length], trained[:max_length], False)]
    else:
        pieces = _split(ids, trained, special, max_length)
    kept = [piece for piece in pieces if _learns(piece)]
    if len(ids) > max_length and kept:
        counts.cut += on_long == "cut"
        counts.split += on_long == "split"
    for _ in range(len(pieces) - len(kept)):
        counts.drop("no trained token")
    return kept


def _learns(piece: Piece) -> bool:
    # The first token has nothing before it to be predicted from, so it never counts.
    return any(piece.trained[1:])


def _ends(ids: Sequence[int], special: SpecialTokens) -> bool:
    # Templates may put a newline behind the end of a turn.
    return any(token in special.ends for token in ids[-2:])


def _split(ids: list[int], trained: list[bool], special: SpecialTokens, max_length: int) -> list[Piece]:
    begin = list(special.begin) if len(special.begin) < max_length else []
    body, flags = ids[len(begin) :], trained[len(begin) :]
    room = max_length - len(begin)
    borders = list(range(0, len(body), room))
    if len(body) - borders[-1] == 1 and room > 1:
        borders[-1] -= 1  # an end token alone would teach to end before anything is said
    pieces = []
    for first, last in zip(borders, [*borders[1:], len(body)], strict=True):
        part = begin + body[first:last]
        ended = last == len(body) and _ends(part, special)
        pieces.append(Piece(part, [False] * len(begin) + flags[first:last], ended))
    return pieces
