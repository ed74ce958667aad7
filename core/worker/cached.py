"""A model's files kept in a run's `base/` for as long as the run is kept."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path

from llmtui.core.cached import write_folder
from llmtui.core.runs.checkpoints import TRAINING_FILES


def keep_model(source: Path, target: Path) -> None:
    """Keep a model's files under a second name: hard links where the disk allows, else copies."""

    def fill(folder: Path) -> None:
        for path in sorted(source.iterdir()):
            if path.is_file() and not any(fnmatch(path.name, pattern) for pattern in TRAINING_FILES):
                _link(path, folder / path.name)

    if not target.is_dir():
        write_folder(target, fill)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copy2(source, target)
