"""Token rows that a test writes down itself."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from llmtui.core.data.tokens import IGNORED


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
