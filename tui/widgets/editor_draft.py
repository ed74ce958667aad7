"""Unsaved edits, kept beside the cache until they are saved or dropped: an SSH link may go at any moment."""

from __future__ import annotations

from pathlib import Path

import msgspec
import xxhash

from llmtui.core.files import write_atomically
from llmtui.core.home import home


class Draft(msgspec.Struct, frozen=True):
    """A text, the file it is meant for, and a hash of what that file held when the edits began."""

    path: str
    base: str
    text: str


def write_draft(path: Path, saved: str, text: str) -> None:
    """Keep the edits of a file; edits that change nothing are not kept.

    Raises:
        OSError, MachineError: the home folder cannot be written.
    """
    if text == saved:
        remove_draft(path)
        return
    place = _place(path)
    place.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(place, msgspec.json.encode(Draft(str(path), _hash(saved), text)))


def read_draft(path: Path, saved: str) -> str | None:
    """The edits that were left behind, if the file is still the one they were made in."""
    try:
        draft = msgspec.json.decode(_place(path).read_bytes(), type=Draft)
    except (OSError, msgspec.DecodeError):
        return None
    return draft.text if draft.base == _hash(saved) and draft.path == str(path) and draft.text != saved else None


def remove_draft(path: Path) -> None:
    """The edits are saved or not wanted."""
    _place(path).unlink(missing_ok=True)


def _place(path: Path) -> Path:
    return home() / "drafts" / f"{_hash(str(path))}.json"


def _hash(text: str) -> str:
    return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogatepass"))
