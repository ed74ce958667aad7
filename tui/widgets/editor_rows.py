"""The lines of the form as values: sections and their fields, in the order of the schema."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A heading. An optional section can be switched; `on` says whether the file has it."""

    key: str
    optional: bool
    on: bool
    note: str
    help: str


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One key of the schema with the value that holds now.

    `text` is the value in the file or, when the key is absent, its default. `problem` is the first thing wrong with it,
    `later` says that its value is valid but cannot be run by this version. `accepts` says in words what may be typed.
    """

    key: str
    section: str
    name: str
    text: str
    is_set: bool
    changed: bool
    off: bool
    default: str
    unit: str
    choices: tuple[str, ...]
    accepts: str
    help: str
    problem: str
    later: bool


FormRow = SectionRow | FieldRow


def can_stand(row: FormRow) -> bool:
    """Whether the cursor stops here."""
    return isinstance(row, FieldRow) or row.optional


def find(rows: tuple[FormRow, ...], text: str, start: int = 0, step: int = 1) -> int | None:
    """The next row from `start` whose key contains `text` (or all its words), going round; None when none does.

    A name that begins with the text comes before one that only contains it.
    """
    words = text.lower().replace("-", "_").split()
    if not words or not rows:
        return None
    order = [(start + step * i) % len(rows) for i in range(len(rows))]
    hits = [i for i in order if can_stand(rows[i]) and all(word in rows[i].key.lower() for word in words)]
    if step > 0 and len(words) == 1:
        exact = [i for i in hits if rows[i].key.lower() == words[0] or rows[i].key.lower().endswith("." + words[0])]
        starts = [i for i in hits if rows[i].key.rpartition(".")[2].lower().startswith(words[0])]
        hits = exact or starts or hits
    return hits[0] if hits else None
