"""From records to a token store, row by row: select, read, clean, render, tokenise. Memory stays flat but for numbers.

Rows are written in the order of the file; what trains, what validates and in which order are lists of row numbers.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llmtui.core.data.cleaning import Cleaner
from llmtui.core.data.content import HASH_BYTES, content_hash
from llmtui.core.data.labels import Labels
from llmtui.core.data.rows import Example, RowReader
from llmtui.core.data.selection import Selection, in_order
from llmtui.core.data.sources import Source, sources_of, val_sources_of
from llmtui.core.data.split import split_rows, without_copies
from llmtui.core.data.templates import renderer
from llmtui.core.data.token_store import TokenWriter
from llmtui.core.data.tokenizer_notes import tokenizer_notes
from llmtui.core.data.tokens import Counts, Piece, encode_batch, finish_rows, special_tokens
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset

if TYPE_CHECKING:
    from llmtui.core.data.token_store import Indices

_BATCH: Final = 500
Progress = Callable[[str, int, int | None], None]


@dataclass
class Made:
    """What making found out; all of it is kept beside the tokens."""

    train: Indices
    val: Indices | None
    rows_read: int
    counts: Counts
    sources: list[dict[str, Any]] = field(default_factory=list)
    """Per source: name, rows, rows dropped by reason while reading and cleaning."""
    cleaned: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    labels: list[str] | None = None


class Side:
    """The rows of one stream that were kept: for each its content, its rank, and its first row in the store."""

    def __init__(self) -> None:
        self.hashes = bytearray()
        self.ranks = array("q")
        self.firsts = array("q")

    def add(self, content: bytes, rank: int) -> None:
        """Note a row before it is written."""
        self.hashes += content
        self.ranks.append(rank)

    def __len__(self) -> int:
        return len(self.ranks)

    def ordered(self) -> Indices:
        """Positions of the kept rows in the order they are used."""
        return in_order(self.ranks)

    def contents(self, order: Indices) -> bytes | bytearray:
        """The hashes in an order."""
        import numpy

        if (order[1:] > order[:-1]).all():
            return self.hashes
        raw: bytes = numpy.frombuffer(self.hashes, dtype=f"V{HASH_BYTES}")[order].tobytes()
        return raw

    def store_rows(self, order: Indices) -> Indices:
        """The store's rows that kept rows became: none where all was dropped, several where one was split."""
        import numpy

        firsts = numpy.frombuffer(self.firsts, dtype=numpy.int64)
        if (firsts[1:] - firsts[:-1] == 1).all():  # as with most data: no row was dropped or split
            rows: Indices = order + firsts[0]
            return rows
        begin, count = firsts[order], firsts[order + 1] - firsts[order]
        ends = numpy.cumsum(count)
        within = numpy.arange(int(ends[-1]) if len(ends) else 0) - numpy.repeat(ends - count, count)
        rows = numpy.repeat(begin, count)
        rows += within
        return rows


class Making:
    """Makes one token store.

    Args:
        base_folder: what relative paths are relative to.
        on_progress: called with phase, done, total.
    """

    def __init__(
        self, preset: Preset, tokenizer: Any, base_folder: Path, writer: TokenWriter, on_progress: Progress
    ) -> None:
        self.preset, self.dataset = preset, preset.dataset
        self.tokenizer = tokenizer
        self.base_folder = base_folder
        self.writer = writer
        self.on_progress = on_progress
        self.everything = self.dataset.train_on == "everything"
        # A labelled row is answered when it is evaluated, so where its answer begins is needed in any case.
        self.masked = not self.everything or self.dataset.label is not None
        self.labels = Labels(self.dataset.label) if self.dataset.label is not None else None
        self.names: dict[str, int] = {}
        self.counts = Counts()
        self.cleaned: Counter[str] = Counter()
        self.sources: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.done = 0

    def make(self) -> Made:
        """Write all rows and split them.

        Raises:
            DataError: anything that cannot be trained on, with place and cure.
            MachineError: a hub that cannot be reached or refuses.
        """
        dataset, seed = self.dataset, self.preset.training.seed
        sources = sources_of(dataset, self.base_folder, self.notes.append)
        rows = self._count(sources) if dataset.shuffle else None
        selection = Selection(shuffle=dataset.shuffle, limit=dataset.limit, seed=seed, rows=rows)
        self.render = renderer(dataset.template, self.tokenizer, self.base_folder, masked=self.masked)
        self.special = special_tokens(self.tokenizer)
        main = self._side(sources, selection)
        train, val = self._split(main, main.ordered())
        self.notes += [f"clean.{step} changed {count} rows" for step, count in self.cleaned.items()]
        self.notes += tokenizer_notes(dataset.template, self.tokenizer, self.base_folder)
        names = list(dict.fromkeys([*self.labels.names, *self.names])) if self.labels is not None else None
        return Made(
            train=train, val=val, rows_read=sum(s["rows"] for s in self.sources), counts=self.counts,
            sources=self.sources, cleaned=dict(self.cleaned), notes=self.notes, labels=names,
        )  # fmt: skip

    def _count(self, sources: list[Source]) -> int:
        self.on_progress("loading_dataset", 0, None)
        return sum(1 for source in sources for _ in source.records())

    def _split(self, main: Side, order: Indices) -> tuple[Indices, Indices | None]:
        dataset, seed = self.dataset, self.preset.training.seed
        contents = main.contents(order)
        if dataset.val is None:
            split = split_rows(contents, float(dataset.val_size) if len(main) else 0, seed)
            if split.moved:
                self.notes.append(f"{split.moved} rows changed sides, so that no copy of a row stands on both")
                if not len(split.val):
                    self.notes.append("no row can be held out: each has more copies than dataset.val_size has room for")
            val = main.store_rows(order[split.val]) if len(split.val) else None
            return main.store_rows(order[split.train]), val
        everything = Selection(shuffle=False, limit=None, seed=seed)
        held_out = self._side(val_sources_of(dataset, self.base_folder, self.notes.append), everything)
        val_order = held_out.ordered()
        kept = without_copies(contents, held_out.contents(val_order))
        if len(kept) < len(main):
            self.counts.dropped["also a validation row"] = len(main) - len(kept)
        return main.store_rows(order[kept]), held_out.store_rows(val_order)

    def _side(self, sources: list[Source], selection: Selection) -> Side:
        """Write the rows of one stream: training and validation rows together, or a validation file."""
        side, cleaner = Side(), Cleaner(self.dataset.clean)
        batch: list[Example] = []
        for rank, example in self._examples(sources, selection):
            cleaned = cleaner.clean(example)
            if isinstance(cleaned, Example):
                side.add(content_hash(cleaned), rank)
                batch.append(cleaned)
            if len(batch) == _BATCH:
                self._write(batch, side)
                batch = []
        self._write(batch, side)
        side.firsts.append(len(self.writer))
        for reason, count in cleaner.dropped.items():
            self.counts.dropped[reason] = self.counts.dropped.get(reason, 0) + count
        self.cleaned.update(cleaner.counts)
        self.on_progress("tokenizing", self.done, self.done)
        return side

    def _examples(self, sources: list[Source], selection: Selection) -> Iterator[tuple[int, Example]]:
        """Readable rows with their rank. Once a row is wrong, the rest is only looked at, to name all of a kind."""
        self.on_progress("loading_dataset", 0, None)
        readers = [RowReader(source.columns, self.labels) for source in sources]
        ranks: list[int] = []
        stream = selection.chosen((n, record) for n, source in enumerate(sources) for record in source.records())
        current: list[tuple[int, tuple[int, Any]] | None] = [next(stream, None)]

        def records_of(number: int) -> Iterator[Any]:
            while current[0] is not None and current[0][1][0] == number:
                rank, (_, record) = current[0]
                ranks.append(rank)
                yield record
                current[0] = next(stream, None)

        for number, (source, reader) in enumerate(zip(sources, readers, strict=True)):
            at = 0
            for example in reader.read(records_of(number)):
                rank = ranks[at]
                at += 1
                if at > 4 * _BATCH:  # what was looked at in advance stays, what is done goes
                    del ranks[:at]
                    at = 0
                if example is not None and not reader.problems:
                    yield rank, example
            ranks.clear()
            self.sources.append({"name": source.name, "rows": reader.rows, "dropped": dict(reader.dropped)})
            for reason, count in reader.dropped.items():
                self.counts.dropped[reason] = self.counts.dropped.get(reason, 0) + count
            reader.finish()

    def _write(self, examples: list[Example], side: Side) -> None:
        rendered = [self.render(example) for example in examples]
        encoded = encode_batch(self.tokenizer, rendered, self.masked)
        dataset = self.dataset
        for example, item, (plain, trained) in zip(examples, rendered, encoded, strict=True):
            side.firsts.append(len(self.writer))
            before = self.counts.cut
            pieces = finish_rows(
                plain, trained, item, self.special, dataset.max_length, dataset.on_long, self.counts
            )  # fmt: skip
            for piece in pieces:
                self._append(piece, example, cut=self.counts.cut > before)
        self.done += len(examples)
        self.on_progress("tokenizing", self.done, None)

    def _append(self, piece: Piece, example: Example, *, cut: bool) -> None:
        answer = label = -1
        if self.labels is not None:
            answer = piece.trained.index(True)
            name = example.label or ""
            for known in (*self.labels.names, name):
                self.names.setdefault(known, len(self.names))
            label = self.names[name]
        if self.everything:
            piece = Piece(piece.ids, [True] * len(piece.ids), piece.ended)
        self.writer.append(piece, example.place, cut=cut, answer=answer, label=label)


def refuse_nothing(train: Indices, counts: Counts, rows: int, preset: Preset) -> None:
    """Refuse a data set of which no row can be trained on.

    Raises:
        DataError: with the reasons counted.
    """
    if len(train):
        return
    reasons = ", ".join(f"{reason}: {count}" for reason, count in counts.dropped.items())
    hint = "check the data's columns"
    if "no trained token" in counts.dropped or "too long" in counts.dropped:
        hint = f"raise dataset.max_length ({preset.dataset.max_length}): prompts are longer than that"
    raise DataError(f"0 of {rows} rows can be trained on ({reasons})", place="dataset", hint=hint)
