"""Bad values collected, so that all of one kind are told at once."""

from __future__ import annotations

from collections import Counter
from typing import Final

from llmtui.core.errors import DataError

SHOWN: Final = 5


class Problems:
    """Bad values of one kind together: the first five with their places, and how many there are."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._hints: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, where: str, hint: str) -> None:
        """Note one; only the first five of a kind keep their place."""
        self._counts[kind] += 1
        self._hints.setdefault(kind, hint)
        places = self._found.setdefault(kind, [])
        if len(places) < SHOWN:
            places.append(where)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def raise_if_any(self) -> None:
        """Raise a DataError that names the commonest kind first."""
        if not self._counts:
            return
        sentences = []
        for kind, count in self._counts.most_common():
            more = f" and {count - SHOWN} more" if count > SHOWN else ""
            sentences.append(f"{kind} ({'; '.join(self._found[kind])}{more})")
        first = self._counts.most_common(1)[0][0]
        raise DataError("\n".join(sentences), hint=self._hints[first])
