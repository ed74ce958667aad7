"""A quick look at the data before anything starts: is it there, has it rows, the right columns, enough of them?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from llmtui.core.data.parsing import parse_file
from llmtui.core.data.rows import column_of
from llmtui.core.data.sources import is_local, local_files
from llmtui.core.data.split import split_sizes
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset

_READ_WHOLE_BYTES: Final = 32 << 20


def check_dataset(preset: Preset, base_folder: Path) -> None:
    """Refuse early what would fail later; hub ids are left to the worker.

    Raises:
        DataError: with place and cure.
    """
    dataset = preset.dataset
    name = dataset.name_or_path
    if name is None or not is_local(name, base_folder):
        return
    files = local_files(name, base_folder)
    if sum(path.stat().st_size for path in files) > _READ_WHOLE_BYTES:
        return  # too large to look at before the start; the worker names what it finds
    rows = 0
    for path in files:
        records, _ = parse_file(path)
        names: dict[str, None] = {}
        for record in records[:1000]:
            names.update(dict.fromkeys(record.fields))
        try:
            column_of(names, dataset.columns)
        except DataError as error:
            raise DataError(error.message, place=path.name, hint=error.hint) from None
        rows += len(records)
    split_sizes(min(rows, dataset.limit or rows), float(dataset.val_size))
