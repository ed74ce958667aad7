"""How many rows will be trained on, when that can be known without downloading or waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from llmtui.core.errors import LlmtuiError
from llmtui.core.forecast.finding import known_rows
from llmtui.core.preset import Preset

_READ_WHOLE_BYTES: Final = 32 << 20
_last: dict[tuple[tuple[str, int, int], ...], int] = {}


def train_rows(preset: Preset, base_folder: Path) -> int | None:
    """Rows of the training side; None for data that is not here or too large to count at once.

    Rows without text or without a trained token are dropped later, so it is an upper bound.
    """
    name = preset.dataset.name_or_path
    if preset.task != "finetune" or not name:
        return None
    try:
        rows = _all_rows(name, base_folder)
        if rows is None:
            return None
        from llmtui.core.data.split import split_sizes

        return split_sizes(min(rows, preset.dataset.limit or rows), float(preset.dataset.val_size))[0]
    except (LlmtuiError, OSError):
        return None


def _all_rows(name: str, base_folder: Path) -> int | None:
    from llmtui.core.data.sources import is_local, local_files

    if not is_local(name, base_folder):
        return known_rows().get(name)
    files = local_files(name, base_folder)
    stats = [(path, path.stat()) for path in files]
    if sum(status.st_size for _, status in stats) > _READ_WHOLE_BYTES:
        return None
    key = tuple((str(path), status.st_size, status.st_mtime_ns) for path, status in stats)
    if key not in _last:  # an editor asks again with every key typed
        from llmtui.core.data.parsing import parse_file

        _last.clear()
        _last[key] = sum(len(parse_file(path)[0]) for path in files)
    return _last[key]
