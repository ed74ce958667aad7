"""Which column is which: names as people write them, or as the preset maps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from llmtui.core.errors import DataError

CANONICAL: Final = ("instruction", "input", "output", "messages", "text", "system")
_ALIASES: Final = {"prompt": "instruction", "completion": "output", "conversations": "messages"}
_SPELLINGS: Final = (
    ("instruction", ("instruction", "prompt", "question", "query")),
    ("input", ("input", "context")),
    ("output", ("output", "completion", "response", "answer")),
    ("messages", ("messages", "conversations", "conversation")),
    ("text", ("text",)),
    ("system", ("system", "system_prompt")),
)
_NAME: Final = re.compile(r"[^\W\d][\w .\-/()]{0,39}")


def column_of(names: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Canonical name → column name, for the columns there are.

    Raises:
        DataError: the mapping names a column that is not there, or no known shape fits.
    """
    present = list(names)
    for canonical, column in columns.items():
        if canonical not in (*CANONICAL, *_ALIASES):
            raise DataError(f'"{canonical}" is nothing a column can be', place="dataset.columns",
                            hint=f"map {', '.join(CANONICAL)}")  # fmt: skip
        if column not in present:
            raise DataError(f'there is no column "{column}"; columns found: {", ".join(present)}',
                            place="dataset.columns", hint="name one of them in dataset.columns")  # fmt: skip
    found = {_ALIASES.get(canonical, canonical): column for canonical, column in columns.items()}
    spelled = {name.strip().casefold(): name for name in reversed(present)}
    for canonical, spellings in _SPELLINGS:
        if canonical not in found:
            taken = set(found.values())
            match = next((spelled[s] for s in spellings if s in spelled and spelled[s] not in taken), None)
            if match is not None:
                found[canonical] = match
    if "instruction" not in found and "input" in found and "output" in found:
        found["instruction"] = found.pop("input")
    if "messages" in found or ("instruction" in found and "output" in found) or "text" in found:
        return found
    raise DataError(
        f"columns found: {', '.join(present) or 'none'}; expected instruction and output (input optional), "
        "or prompt and completion, or messages, or text",
        place="dataset.name_or_path", hint=_cure(present),
    )  # fmt: skip


def _cure(names: Sequence[str]) -> str:
    if len(names) == 1:
        for sign, word in ((";", "';'"), ("\t", "a tab"), ("|", "'|'"), (",", "','")):
            if sign in names[0]:
                return f"the file looks separated by {word}"
    if not all(_NAME.fullmatch(name) for name in names if name):
        return "this looks like a row, not a header: add a first line such as instruction,output"
    return "map them with dataset.columns: {instruction: …, output: …}"
