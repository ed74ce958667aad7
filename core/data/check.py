"""A quick look at the data before anything starts: is it there, has it rows, the right columns, enough of them?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from llmtui.core.data.labels import Labels
from llmtui.core.data.parsing import parse_file
from llmtui.core.data.rows import column_of
from llmtui.core.data.sources import is_local, local_files
from llmtui.core.data.split import split_sizes
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.preset.paths import is_split_name

_READ_WHOLE_BYTES: Final = 32 << 20


def check_dataset(preset: Preset, base_folder: Path) -> None:
    """Refuse early what would fail later; hub ids are left to the worker.

    Raises:
        DataError: with place and cure.
    """
    dataset = preset.dataset
    if dataset.val is not None and not is_split_name(dataset.val):
        try:
            _rows(dataset.val, preset, base_folder)
        except DataError as error:
            hint = error.hint.replace("dataset.name_or_path", "dataset.val")
            raise DataError(error.message, place=error.place, hint=hint) from None
    if dataset.name_or_path is None or not is_local(dataset.name_or_path, base_folder):
        return
    rows = _rows(dataset.name_or_path, preset, base_folder)
    if rows is not None:
        split_sizes(min(rows, dataset.limit or rows), float(dataset.val_size))


def _rows(name: str, preset: Preset, base_folder: Path) -> int | None:
    """How many rows there are, their columns checked; None for what is too large to look at before the start."""
    files = local_files(name, base_folder)
    if sum(path.stat().st_size for path in files) > _READ_WHOLE_BYTES:
        return None
    dataset, rows = preset.dataset, 0
    for path in files:
        records, _ = parse_file(path)
        names: dict[str, None] = {}
        for record in records[:1000]:
            names.update(dict.fromkeys(record.fields))
        try:
            if dataset.label is not None:
                Labels(dataset.label).found(names, dataset.columns)
            else:
                column_of(names, dataset.columns)
        except DataError as error:
            raise DataError(error.message, place=path.name, hint=error.hint) from None
        rows += len(records)
    return rows
