"""Where the records come from: a file, a folder of files, or a hub set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final

from llmtui.core.data.hub import hub_records
from llmtui.core.data.parquet_rows import MAGIC
from llmtui.core.data.parsing import SUFFIXES, Cut, stream_file, suffix
from llmtui.core.data.records import Record
from llmtui.core.data.text_files import first_bytes
from llmtui.core.errors import DataError
from llmtui.core.preset.paths import is_split_name
from llmtui.core.preset.schema import DatasetSection, SourceSection

_DESCRIBING: Final = frozenset({"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"})
_HELD_OUT: Final = frozenset({"test", "val", "valid", "validation", "dev", "eval"})


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
        return _files_in(path, name)
    if not path.is_file():
        near = get_close_matches(
            path.name, [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else [], n=1
        )
        hint = f"did you mean {path.parent / near[0]}?" if near else "check dataset.name_or_path"
        raise DataError("there is no such data file", place=name, hint=hint)
    if suffix(path) not in SUFFIXES and first_bytes(path, 4) != MAGIC:
        raise DataError(f"files ending in {path.suffix or 'nothing'} are not data files here", place=name,
                        hint=f"use {', '.join(SUFFIXES)}, also .gz")  # fmt: skip
    return [path]


def _files_in(folder: Path, name: str) -> list[Path]:
    """The data files of a folder, else those of its subfolders; what describes data is none."""
    for found in (folder.iterdir(), folder.rglob("*")):
        files = sorted(
            path for path in found
            if suffix(path) in SUFFIXES and path.name not in _DESCRIBING and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        )  # fmt: skip
        if files:
            return files
    if next(folder.rglob("*.arrow"), None) is not None:
        raise DataError(
            "the folder was written by save_to_disk",
            place=name,
            hint='write it out as Parquet: datasets.load_from_disk(…)["train"].to_parquet("rows.parquet")',
        )
    raise DataError("the folder holds no data file", place=name, hint=f"put {', '.join(SUFFIXES)} files there")


def _other_splits(files: Sequence[Path]) -> list[str]:
    """Files that are called like validation or test rows beside files that are called like training rows."""
    words = [set(re.split(r"[^a-z]+", path.name.lower())) for path in files]
    others = [path.name for path, parts in zip(files, words, strict=True) if parts & _HELD_OUT]
    return others if any("train" in parts for parts in words) else []


@dataclass(frozen=True)
class Source:
    """One source of rows: a file, a folder or a hub set, read anew by every call of `records`."""

    name: str
    files: tuple[Path, ...]
    config: str | None
    split: str
    columns: Mapping[str, str]
    limit: int | None
    cut: Cut
    note: Callable[[str], None]

    def records(self) -> Iterator[Record]:
        """Its records, one after the other.

        Raises:
            DataError: with file, line and what stands there.
            MachineError: a hub that cannot be reached or refuses.
        """
        everything = self._local() if self.files else hub_records(self.name, self.config, self.split)
        return islice(everything, self.limit)

    def first_records(self, count: int) -> Iterator[Record]:
        """The first records of every file here, without reading on; none of a hub set."""
        for path in self.files:
            yield from islice(stream_file(path, self.note, self.cut), count)

    def _local(self) -> Iterator[Record]:
        if others := _other_splits(self.files):
            self.note(f"{self.name}: all files are read, also {', '.join(others)}; "
                      "name the file to train on when they are for evaluation")  # fmt: skip
        found = False
        for path in self.files:
            if len(self.files) > 1 and not path.stat().st_size:
                self.note(f"{path.name} is empty")
                continue
            for record in stream_file(path, self.note, self.cut):
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
    own = SourceSection(name_or_path="-", config=dataset.config, split=dataset.split)
    named = [own.model_copy(update={"name_or_path": dataset.name_or_path})] if dataset.name_or_path else []
    return [_source(source, dataset, base_folder, said) for source in (*named, *dataset.sources)]


def val_sources_of(dataset: DatasetSection, base_folder: Path, note: Callable[[str], None]) -> list[Source]:
    """The source of `dataset.val`: a file, another hub set, or a split of the training set."""
    val = dataset.val or ""
    named = SourceSection(name_or_path=val or "-")
    if is_split_name(val):
        update = {"name_or_path": dataset.name_or_path or "", "config": dataset.config, "split": val}
        named = named.model_copy(update=update)
    return [_source(named, dataset, base_folder, _once(note))]


def _source(source: SourceSection, dataset: DatasetSection, base_folder: Path, note: Callable[[str], None]) -> Source:
    name = source.name_or_path
    files = tuple(local_files(name, base_folder)) if is_local(name, base_folder) else ()
    columns = source.columns or dataset.columns
    return Source(name, files, source.config, source.split, columns, source.limit, dataset.cut, note)


def _once(note: Callable[[str], None]) -> Callable[[str], None]:
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            note(text)

    return tell
