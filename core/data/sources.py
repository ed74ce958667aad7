"""Where the records come from: a file, a folder of files, or a hub set."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from llmtui.core.data.hub import hub_records
from llmtui.core.data.parsing import SUFFIXES, Record, parse_file, suffix
from llmtui.core.errors import DataError


def is_local(name: str, base_folder: Path) -> bool:
    """Whether a name means a file or folder here rather than a hub id."""
    path = base_folder / Path(name).expanduser()
    return path.exists() or name.startswith(("/", ".", "~")) or suffix(Path(name)) in SUFFIXES


def local_files(name: str, base_folder: Path) -> list[Path]:
    """The data files a local name means, in order.

    Raises:
        DataError: there is none; the nearest name is suggested.
    """
    path = base_folder / Path(name).expanduser()
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and suffix(p) in SUFFIXES)
        if not files:
            raise DataError("the folder holds no data file", place=name, hint=f"put {', '.join(SUFFIXES)} files there")
        return files
    if not path.is_file():
        near = get_close_matches(
            path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], n=1
        )
        hint = f"did you mean {path.parent / near[0]}?" if near else "check dataset.name_or_path"
        raise DataError("there is no such data file", place=name, hint=hint)
    if suffix(path) not in SUFFIXES:
        raise DataError(f"files ending in {path.suffix or 'nothing'} are not data files here", place=name,
                        hint=f"use {', '.join(SUFFIXES)}, also .gz")  # fmt: skip
    return [path]


def read_records(name: str, base_folder: Path, config: str | None, split: str) -> tuple[list[Record], list[str]]:
    """All records of a source, and what is worth saying about reading them."""
    if not is_local(name, base_folder):
        return list(hub_records(name, config, split)), []
    records: list[Record] = []
    notes: list[str] = []
    for path in local_files(name, base_folder):
        new, said = parse_file(path)
        records += new
        notes += said
    if not records:
        raise DataError("there are no rows", place=name, hint="name another file")
    return records, notes
