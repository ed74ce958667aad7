"""What tests of data files share: write bytes, read examples, catch the refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmtui.core.data.parsing import Cut, stream_file
from llmtui.core.data.rows import Example, RowReader
from llmtui.core.errors import DataError


@dataclass
class Reading:
    """What a file came to."""

    examples: list[Example | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Instruction and output of every row that is left."""
        return [(e.instruction, e.output) for e in self.examples if e is not None]

    @property
    def texts(self) -> list[str | None]:
        """The plain texts."""
        return [e.text for e in self.examples if e is not None]

    @property
    def turns(self) -> list[list[tuple[str, str]]]:
        """Role and content of every conversation."""
        return [[(t.role, t.content) for t in e.turns] for e in self.examples if e is not None]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, cut: Cut = "line", **columns: str) -> Reading:
    found = Reading()
    reader = RowReader(columns)
    found.examples = list(reader.read(stream_file(path, found.notes.append, cut)))
    reader.finish()
    found.dropped = dict(reader.dropped)
    return found


def refused(path: Path, cut: Cut = "line", **columns: str) -> str:
    """The sentence with which a file is refused; it has a cure."""
    with pytest.raises(DataError) as caught:
        read(path, cut, **columns)
    assert caught.value.hint
    return str(caught.value)
