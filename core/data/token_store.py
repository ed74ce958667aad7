"""Token rows in a folder: written once in the order they come, read row by row without holding them in memory.

`ids.bin` holds int32, `trained.bin` one byte per token, `places.bin` where each row stands in its file; the `.column`
files one number per row. Reading uses `pread`, so that what was read does not count as the process's memory.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from llmtui.core.data.answers import Answers
from llmtui.core.data.tokens import IGNORED, Piece

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Indices = NDArray[numpy.int64]

_CHUNK: Final = 1 << 16
CUT: Final = 1
ENDED: Final = 2
FIRST_TRAINED: Final = 4  # the row's first token, which nothing predicts: what is fed never trains it
# Little-endian numpy types, and as `struct` and `array` name them.
_TYPES: Final = {"starts": "<i8", "place_starts": "<i8", "trained": "<i4", "flags": "|u1", "hashes": "<u8",
                 "answers": "<i4", "labels": "<i4"}  # fmt: skip
_CODES: Final = {"starts": "q", "place_starts": "q", "trained": "i", "flags": "B", "hashes": "Q", "answers": "i",
                 "labels": "i"}  # fmt: skip
_FLUSH: Final = 1 << 12  # numbers of a column that are held back


class TokenRows(Protocol):
    """What trains and evaluates asks of rows: ids and labels (-100 where not trained), lengths, counts."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> dict[str, list[int]]: ...

    @property
    def lengths(self) -> list[int]: ...

    @property
    def tokens(self) -> int: ...

    @property
    def trained_tokens(self) -> int: ...


class TokenWriter:
    """Appends rows to the files of a new store; memory does not grow with them."""

    def __init__(self, folder: Path) -> None:
        self._files = {
            name: (folder / name).open("wb", buffering=1 << 16)
            for name in ("ids.bin", "trained.bin", "places.bin", *(f"{name}.column" for name in _CODES))
        }
        self._columns = {name: array(code) for name, code in _CODES.items()}
        self._rows = self._end = self._place_end = 0
        self._columns["starts"].append(0)
        self._columns["place_starts"].append(0)
        self.used: set[int] = set()
        """Every token id that was written."""

    def __len__(self) -> int:
        return self._rows

    def append(self, piece: Piece, place: str, *, cut: bool = False, answer: int = -1, label: int = -1) -> None:
        """Add a row.

        Args:
            place: `file:line` of the row it came from.
            answer: the index of the answer's first token, and
            label: the answer's label, for labelled rows.
        """
        import xxhash

        ids, trained = array("i", piece.ids).tobytes(), bytes(piece.trained)
        self._files["ids.bin"].write(ids)
        self._files["trained.bin"].write(trained)
        self._rows += 1
        self._end += len(piece.ids)
        self._place_end += self._files["places.bin"].write(place.encode("utf-8", "replace"))
        first = FIRST_TRAINED if piece.trained[:1] == [True] else 0
        row = {
            "starts": self._end, "place_starts": self._place_end, "trained": sum(piece.trained),
            "flags": (CUT if cut else 0) | (ENDED if piece.ended else 0) | first,
            "hashes": xxhash.xxh3_64_intdigest(trained, xxhash.xxh3_64_intdigest(ids)), "answers": answer,
            "labels": label,
        }  # fmt: skip
        for name, value in row.items():
            self._columns[name].append(value)
        if self._rows % _FLUSH == 0:
            self._flush()
        self.used.update(piece.ids)

    def _flush(self) -> None:
        for name, column in self._columns.items():
            self._files[f"{name}.column"].write(column.tobytes())
            del column[:]

    def close(self) -> None:
        """Write what is left; the folder is complete but for what its owner adds."""
        self._flush()
        for file in self._files.values():
            file.close()


class TokenStore:
    """A written store, open for reading.

    Raises:
        OSError: a file is missing.
        ValueError: a file is not what was written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = {name: os.open(folder / f"{name}.bin", os.O_RDONLY | os.O_CLOEXEC)
                       for name in ("ids", "trained", "places")}  # fmt: skip
        self._columns: dict[str, Any] = {}
        self.starts = self.column("starts")

    def __del__(self) -> None:
        for descriptor in getattr(self, "_files", {}).values():
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def column(self, name: str) -> Any:
        """One number per row: `trained`, `flags`, `hashes`, `answers`, `labels`; one more for `starts`."""
        if name not in self._columns:
            import numpy

            self._columns[name] = numpy.fromfile(self.folder / f"{name}.column", dtype=_TYPES[name])
        return self._columns[name]

    def ids(self, row: int) -> array[int]:
        """The token ids of a row, in the order of the store."""
        return self._read("ids", "i", int(self.starts[row]), int(self.starts[row + 1]))

    def trained(self, row: int) -> bytes:
        """For each token of a row 1 when it is trained."""
        return self._read("trained", "B", int(self.starts[row]), int(self.starts[row + 1])).tobytes()

    def place(self, row: int) -> str:
        """Where the row stands in its file."""
        starts = self.column("place_starts")
        raw = os.pread(self._files["places"], int(starts[row + 1] - starts[row]), int(starts[row]))
        return raw.decode("utf-8")

    def _read(self, name: str, code: str, begin: int, end: int) -> array[int]:
        values: array[int] = array(code)
        size = values.itemsize
        values.frombytes(os.pread(self._files[name], (end - begin) * size, begin * size))
        return values


class StoredTokens:
    """Some rows of a store in an order of their own: one side of the split.

    Args:
        order: int64, the rows' numbers in the store.
    """

    def __init__(self, store: TokenStore, order: Indices) -> None:
        self.store = store
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        if index < 0 or index >= len(self):
            raise IndexError(index)
        row = int(self.order[index])
        ids = self.store.ids(row).tolist()
        trained = self.store.trained(row)
        return {"input_ids": ids, "labels": [i if learn else IGNORED for i, learn in zip(ids, trained, strict=True)]}

    @property
    def lengths(self) -> list[int]:
        """Tokens per row."""
        lengths: list[int] = self.length_array().tolist()
        return lengths

    def length_array(self) -> NDArray[numpy.int32]:
        """Tokens per row, made in pieces: with a million rows every copy of the order would count."""
        import numpy

        lengths, starts = numpy.empty(len(self), dtype=numpy.int32), self.store.starts
        for begin in range(0, len(self), _CHUNK):
            rows = self.order[begin : begin + _CHUNK]
            lengths[begin : begin + _CHUNK] = starts[rows + 1] - starts[rows]
        return lengths

    @property
    def tokens(self) -> int:
        """All tokens."""
        return int(self.length_array().sum(dtype="int64"))

    @property
    def trained_tokens(self) -> int:
        """Tokens that count in the loss."""
        return int(self.store.column("trained")[self.order].sum())

    def flagged(self, flag: int) -> int:
        """How many rows are `CUT`, `ENDED` or `FIRST_TRAINED`."""
        return int((self.store.column("flags")[self.order] & flag != 0).sum())

    def content(self) -> bytes:
        """The rows' hashes in their order, for a hash of all."""
        raw: bytes = self.store.column("hashes")[self.order].tobytes()
        return raw

    def answers(self, names: Sequence[str]) -> Answers:
        """Where the answers of labelled rows begin, and their labels."""
        chosen = Answers(names)
        chosen.starts.extend(self.store.column("answers")[self.order].tolist())
        chosen.labels.extend(self.store.column("labels")[self.order].tolist())
        return chosen
