"""Where the records come from: a file, a folder of files, or a hub set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from llmtui.core.data.hub import hub_records
from llmtui.core.data.parsing import SUFFIXES, Record, parse_file, stream_file, suffix
from llmtui.core.errors import DataError
from llmtui.core.preset.paths import is_split_name
from llmtui.core.preset.schema import DatasetSection


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


@dataclass(frozen=True)
class Source:
    """One source of rows: a file, a folder or a hub set, read anew by every call of `records`."""

    name: str
    files: tuple[Path, ...]
    config: str | None
    split: str
    columns: Mapping[str, str]
    limit: int | None
    note: Callable[[str], None]

    def records(self) -> Iterator[Record]:
        """Its records, one after the other.

        Raises:
            DataError: with file, line and what stands there.
            MachineError: a hub that cannot be reached or refuses.
        """
        everything = self._local() if self.files else hub_records(self.name, self.config, self.split)
        return islice(everything, self.limit)

    def _local(self) -> Iterator[Record]:
        found = False
        for path in self.files:
            for record in stream_file(path, self.note):
                found = True
                yield record
        if not found:
            raise DataError("there are no rows", place=self.name, hint="name another file")


def sources_of(dataset: DatasetSection, base_folder: Path, note: Callable[[str], None]) -> list[Source]:
    """The training sources of a preset, in their order.

    Args:
        base_folder: what relative paths are relative to.
        note: told once what is worth saying about reading a file.
    """
    said = _once(note)
    first = dataset.name_or_path
    named = [_source(first, dataset.config, dataset.split, dataset.columns, None, base_folder, said)] if first else []
    return named + [
        _source(s.name_or_path, s.config, s.split, s.columns or dataset.columns, s.limit, base_folder, said)
        for s in dataset.sources
    ]


def val_sources_of(dataset: DatasetSection, base_folder: Path, note: Callable[[str], None]) -> list[Source]:
    """The source of `dataset.val`: a file, another hub set, or a split of the training set."""
    val = dataset.val or ""
    said = _once(note)
    if is_split_name(val):
        return [_source(dataset.name_or_path or "", dataset.config, val, dataset.columns, None, base_folder, said)]
    return [_source(val, None, "train", dataset.columns, None, base_folder, said)]


def _source(
    name: str, config: str | None, split: str, columns: Mapping[str, str], limit: int | None, base_folder: Path,
    note: Callable[[str], None],
) -> Source:  # fmt: skip
    files = tuple(local_files(name, base_folder)) if is_local(name, base_folder) else ()
    return Source(name, files, config, split, columns, limit, note)


def _once(note: Callable[[str], None]) -> Callable[[str], None]:
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            note(text)

    return tell


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
