"""A run's state at a glance: the beginning and the end of a long event file, not what lies between.

For lists of runs that have ended. The curve is not whole, so speeds and the steps of the end are right,
what is summed over the whole run (tokens, whole time) is not: `read_state` gives those.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.fold import Fold
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.reader import liveness
from llmtui.core.runs.state import RunState

_EDGE_BYTES: Final = 1 << 20


def glance(directory: RunDirectory) -> RunState:
    """The state, from at most a megabyte or two at each end of its files.

    Raises:
        DataError: `run.json` is missing or damaged.
        OSError: a file cannot be read.
    """
    fold = Fold(directory.info())
    alive = liveness(directory)
    for path in (directory.events, directory.monitor):
        reader = EventReader(path)
        size = _size(path)
        whole = size <= 4 * _EDGE_BYTES
        for event in reader.read_new(None if whole else 1):
            fold.apply(event)
        if not whole:
            reader.offset = max(reader.offset, _line_start(path, size - _EDGE_BYTES))
            for event in reader.read_new():
                fold.apply(event)
    return fold.snapshot(alive)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _line_start(path: Path, offset: int) -> int:
    """The first beginning of a line at or after an offset."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while block := os.pread(descriptor, 1 << 16, offset):
            end = block.find(b"\n")
            if end >= 0:
                return offset + end + 1
            offset += len(block)
        return offset
    finally:
        os.close(descriptor)
