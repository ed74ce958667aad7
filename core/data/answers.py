"""Where each row's answer begins and which label it is, beside a token set of labelled rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence


class Answers:
    """One entry per row of a token set, in its order.

    Args:
        names: the labels; a row's `label` is an index into them.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names: list[str] = list(names)
        self.starts = array("i")
        """The index of the answer's first token: the ids before it are the prompt."""
        self.labels = array("i")
        self._index = {name: number for number, name in enumerate(self.names)}

    def append(self, start: int, name: str) -> None:
        """Add a row; a new name gets the next index."""
        if name not in self._index:
            self._index[name] = len(self.names)
            self.names.append(name)
        self.starts.append(start)
        self.labels.append(self._index[name])

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, rows: Iterable[int]) -> Answers:
        """The entries of some rows, in that order."""
        chosen = Answers(self.names)
        for row in rows:
            chosen.starts.append(self.starts[row])
            chosen.labels.append(self.labels[row])
        return chosen
