"""How many rows will be trained on, when that can be known without downloading or waiting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from llmtui.core.errors import LlmtuiError
from llmtui.core.forecast.finding import known_rows
from llmtui.core.preset import Preset

if TYPE_CHECKING:
    from llmtui.core.data.sources import Source

_KEPT: Final = 16  # sources whose rows were counted
_last: dict[tuple[object, ...], int] = {}


def train_rows(preset: Preset, base_folder: Path) -> int | None:
    """Rows of the training side; None for data that is not here or too large to count at once.

    Rows without text or without a trained token are dropped later, so it is an upper bound.
    """
    if preset.task != "finetune":
        return None
    from llmtui.core.data.sources import sources_of
    from llmtui.core.data.split import split_sizes

    try:
        counted = [_rows_of(source) for source in sources_of(preset.dataset, base_folder, lambda _: None)]
        rows = sum(count for count in counted if count is not None)
        if not rows or None in counted:
            return None
        return split_sizes(min(rows, preset.dataset.limit or rows), float(preset.dataset.val_size))[0]
    except (LlmtuiError, OSError):
        return None


def _rows_of(source: Source) -> int | None:
    from llmtui.core.data.check import READ_WHOLE_BYTES, local_bytes

    if not source.files:
        known = known_rows().get(source.name)
        return min(known, source.limit or known) if known is not None else None
    if local_bytes([source]) > READ_WHOLE_BYTES:
        return None
    stats = [(path, path.stat()) for path in source.files]
    files = tuple((str(path), status.st_size, status.st_mtime_ns) for path, status in stats)
    key = (files, source.limit, source.cut)
    if key not in _last:  # an editor asks again with every key typed
        while len(_last) >= _KEPT:
            del _last[next(iter(_last))]
        _last[key] = sum(1 for _ in source.records())
    return _last[key]
