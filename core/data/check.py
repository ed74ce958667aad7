"""A quick look at the data before anything starts: is it there, can its rows be read, are there enough of them?

Small data is read whole, so that every wrong row is told now; of large data the first rows are looked at, and what is
wrong further down is told while it is prepared, which is before the model is loaded too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from llmtui.core.data.labels import Labels
from llmtui.core.data.rows import RowReader
from llmtui.core.data.sources import Source, sources_of, val_sources_of
from llmtui.core.data.split import split_sizes
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.preset.paths import is_split_name

READ_WHOLE_BYTES: Final = 16 << 20
_LOOK_INTO_BYTES: Final = 256 << 20  # finding out the encoding reads a file once
_PACKED: Final = 8  # how much larger gzipped text is about
_FIRST_ROWS: Final = 1000


def check_dataset(preset: Preset, base_folder: Path) -> None:
    """Refuse early what would fail later; hub ids are left to the worker.

    Raises:
        DataError: with place and cure.
    """
    dataset = preset.dataset
    if dataset.val is not None and not is_split_name(dataset.val):
        try:
            _rows(val_sources_of(dataset, base_folder, _quiet), preset, None)
        except DataError as error:
            hint = error.hint.replace("dataset.name_or_path", "dataset.val")
            raise DataError(error.message, place=error.place, hint=hint) from None
    sources = sources_of(dataset, base_folder, _quiet)
    rows = _rows(sources, preset, None if dataset.shuffle else dataset.limit) if sources else None
    if rows is not None:
        split_sizes(min(rows, dataset.limit or rows), float(dataset.val_size))


def local_bytes(sources: Sequence[Source]) -> int:
    """About how much there is to read, without hub sets."""
    sizes = ((path, path.stat().st_size) for source in sources for path in source.files)
    return sum(size * (_PACKED if path.name.lower().endswith(".gz") else 1) for path, size in sizes)


def _rows(sources: Sequence[Source], preset: Preset, limit: int | None) -> int | None:
    """How many rows there are, looked at one by one; None when not all of them can be counted now."""
    size = local_bytes(sources)
    if size > _LOOK_INTO_BYTES:
        return None
    whole = size <= READ_WHOLE_BYTES and all(source.files for source in sources)
    rows, dropped = 0, Counter[str]()
    for source in sources:
        if source.files and (limit is None or rows < limit):
            reader = RowReader(source.columns, Labels(preset.dataset.label) if preset.dataset.label else None)
            records = source.records() if whole else source.first_records(_FIRST_ROWS)
            rows += sum(1 for _ in reader.read(islice(records, None if limit is None else limit - rows)))
            reader.finish()
            dropped.update(reader.dropped)
    if whole and rows and dropped.total() == rows:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
        raise DataError(f"0 of {rows} rows can be trained on ({reasons})", place="dataset",
                        hint="check the data's columns")  # fmt: skip
    return rows if whole else None


def _quiet(_: str) -> None:
    """Notes are for the run."""
