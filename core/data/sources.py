"""Where the records come from: a file, a folder of files, or a hub set."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from llmtui.core.data.parsing import SUFFIXES, Record, Written, parse_file, suffix
from llmtui.core.errors import DataError, MachineError


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
        return _hub(name, config, split), []
    records: list[Record] = []
    notes: list[str] = []
    for path in local_files(name, base_folder):
        new, said = parse_file(path)
        records += new
        notes += said
    if not records:
        raise DataError("there are no rows", place=name, hint="name another file")
    return records, notes


def _hub(name: str, config: str | None, split: str) -> list[Record]:
    import datasets

    datasets.disable_progress_bars()
    try:
        loaded = datasets.load_dataset(name, config, split=split)
    except Exception as error:
        raise _hub_error(name, error) from error
    return [Record(f"{name}, row {n}", _fields(row)) for n, row in enumerate(loaded, 1)]


def _fields(row: Any) -> dict[str, Any]:
    return {k: v if v is None or isinstance(v, str | list | dict) else Written(v) for k, v in row.items()}


def _hub_error(name: str, error: Exception) -> DataError | MachineError:
    text = f"{type(error).__name__}: {error}"
    if "gated" in text.lower() or "401" in text or "403" in text:
        return MachineError(f"access to the data set {name} is refused", place="dataset.name_or_path",
                            hint="accept its terms on its hub page, then `hf auth login` or set HF_TOKEN")  # fmt: skip
    if "DatasetNotFound" in text or "doesn't exist" in text:
        return DataError(f'there is no file, folder or hub set "{name}" that can be reached from here',
                         place="dataset.name_or_path", hint="check the name and the network")  # fmt: skip
    if any(word in text for word in ("Connection", "offline", "Offline", "resolve", "timed out", "LocalEntryNotFound")):
        return MachineError(f"the hub cannot be reached for the data set {name}", place="dataset.name_or_path",
                            hint="check the network, or name a local file")  # fmt: skip
    return DataError(f"the data set {name} cannot be loaded: {text.splitlines()[0][:200]}",
                     place="dataset.name_or_path", hint="check name, config and split")  # fmt: skip
