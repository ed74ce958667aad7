"""Rows as the model will see them: pieces of text, trained, masked or special; searched without a tokenizer."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from llmtui.core.data.made import read_pieces
from llmtui.core.data.prepare import Prepared
from llmtui.core.data.token_store import CUT, ENDED, StoredTokens

Side = Literal["train", "val"]
Kind = Literal["trained", "masked", "special"]
_Decoder: Final = getincrementaldecoder("utf-8")


class Piece(NamedTuple):
    """A stretch of a row's text. `special`: one special token, which is trained or not as `trained` says.

    A character whose bytes are spread over several tokens stands whole where its last byte does.
    """

    text: str
    kind: Kind
    trained: bool


@dataclass(frozen=True)
class PreviewRow:
    """A row with what is worth knowing about it.

    `place` is the file and line it came from, `tokens` its length, `trained` how many of them count in the loss,
    `ended` whether it has an end token, `label` the answer of a labelled row.
    """

    side: Side
    index: int
    place: str
    pieces: tuple[Piece, ...]
    tokens: int
    trained: int
    cut: bool
    ended: bool
    label: str | None

    @property
    def text(self) -> str:
        """All of it, special tokens included."""
        return "".join(piece.text for piece in self.pieces)


class Preview:
    """The rows of prepared data. Texts come from outside: make them safe before they reach a terminal."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._pieces = read_pieces(prepared.folder)
        self._raw = {number: piece.raw for number, piece in self._pieces.items()}

    def rows(self, side: Side) -> int:
        """How many rows a side has."""
        tokens = self._tokens(side)
        return len(tokens) if tokens is not None else 0

    def row(self, side: Side, index: int) -> PreviewRow:
        """A row, in the order of the training or validation set.

        Raises:
            IndexError: there is no such row.
        """
        tokens = self._tokens(side)
        if tokens is None or not 0 <= index < len(tokens):
            raise IndexError(index)
        store, number = tokens.store, int(tokens.order[index])
        trained = store.trained(number)
        trained = b"\0" + trained[1:]  # nothing predicts the first token, so it never counts
        flags = int(store.column("flags")[number])
        answers = self._prepared.train_answers if side == "train" else self._prepared.answers
        return PreviewRow(
            side=side, index=index, place=store.place(number),
            pieces=tuple(_merged(self._stretches(store.ids(number).tolist(), trained))), tokens=len(trained),
            trained=sum(trained), cut=bool(flags & CUT), ended=bool(flags & ENDED),
            label=answers.names[answers.labels[index]] if answers is not None else None,
        )  # fmt: skip

    def find(
        self, side: Side, text: str, start: int, *, backwards: bool = False, stop: Callable[[], bool] = lambda: False
    ) -> int | None:
        """The next row that holds a text, or stands at a place (`rows.jsonl:12` or just `:12`); from `start` on, round.

        Upper and lower case are the same.

        Args:
            stop: asked before each row; ends the search without a result.
        """
        rows, wanted = self.rows(side), text.casefold()
        tokens = self._tokens(side)
        if tokens is None or not wanted:
            return None
        by_place = ":" in wanted
        for step in range(rows):
            if stop():
                return None
            index = (start - step if backwards else start + step) % rows
            number = int(tokens.order[index])
            if wanted in self._text(tokens, number).casefold():
                return index
            if by_place and tokens.store.place(number).casefold().endswith(wanted):
                return index
        return None

    def _tokens(self, side: Side) -> StoredTokens | None:
        return self._prepared.train if side == "train" else self._prepared.val

    def _text(self, tokens: StoredTokens, number: int) -> str:
        raw = b"".join(map(self._raw.__getitem__, tokens.store.ids(number)))
        return raw.decode("utf-8", "replace")

    def _stretches(self, ids: list[int], trained: bytes) -> Iterator[Piece]:
        """The text of each token; half a character waits for its rest."""
        decoder = _Decoder("replace")
        before = Piece("", "masked", False)
        for number, learn in zip(ids, trained, strict=True):
            raw, special = self._pieces[number]
            if special:
                yield before._replace(text=decoder.decode(b"", final=True))
                yield Piece(raw.decode("utf-8", "replace"), "special", bool(learn))
                continue
            before = Piece(decoder.decode(raw), "trained" if learn else "masked", bool(learn))
            yield before
        yield before._replace(text=decoder.decode(b"", final=True))


def _merged(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbours of one kind together; special tokens stay apart."""
    current: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if current and (piece.kind == "special" or piece.kind != current[-1].kind):
            yield current[0]._replace(text="".join(part.text for part in current))
            current = []
        current.append(piece)
    if current:
        yield current[0]._replace(text="".join(part.text for part in current))
