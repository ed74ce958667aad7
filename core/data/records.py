"""One row as it is read, before anything is known about what its columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Written(str):
    """A scalar that is not text in the file, as it is written there."""

    __slots__ = ()


class ClassId(Written):
    """A class's number in a hub set; `name` is what the set calls it, empty for a row without a class."""

    __slots__ = ("name",)
    name: str

    @classmethod
    def of(cls, number: int, names: Sequence[str]) -> ClassId:
        """The class of this number; a negative one means that there is none."""
        identity = cls(number)
        identity.name = names[number] if 0 <= number < len(names) else ""
        return identity


@dataclass(frozen=True, slots=True)
class Part:
    """What rows of the same columns come from: one file, or one hub set.

    `names` are the columns met in its first rows, in their order.
    """

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One row as read. `place` is `file:line` or `file, row N`."""

    place: str
    fields: dict[str, Any]
    part: Part | None = None
