"""Everything a preset's run will need, brought here now: `python -m llmtui.core.worker.fetching`, its text on stdin.

Prints lines of JSON: progress, and at last what is here, or the error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from llmtui.core.data.prepare import open_prepared
from llmtui.core.files import folder_bytes
from llmtui.core.preset import Preset, parse_preset
from llmtui.core.worker.answering import Say, answer
from llmtui.core.worker.locate import Location, locate
from llmtui.core.worker.preparing import prepared_folder


def fetched(preset: Preset, say: Say) -> dict[str, Any]:
    """What is here now: where the model is and its bytes, where the rows are and how many.

    Raises:
        LlmtuiError: with place and cure.
    """
    location = _model(preset, say)
    rows = prepared_folder(preset, say)
    prepared = open_prepared(rows)
    return {
        "model": {"name": preset.model.name_or_path, "path": location.path, "bytes": _bytes(Path(location.path))},
        "data": {"path": str(rows), "train_rows": len(prepared.train), "val_rows": prepared.meta.val,
                 "tokens": prepared.train.tokens, "notes": prepared.warnings},
    }  # fmt: skip


def _model(preset: Preset, say: Say) -> Location:
    location = locate(preset.model.name_or_path, Path.cwd())
    if location.gguf is None and location.adapter is None and location.local:
        return location
    import tempfile

    from llmtui.core.worker.models import find_model

    with tempfile.TemporaryDirectory() as scratch:  # what a run keeps in its base/ is in the cache after this
        found = find_model(preset, Path.cwd(), Path(scratch) / "base", say)
        return found if not found.path.startswith(scratch) else location


def _bytes(folder: Path) -> int:
    # A hub snapshot is links to files that stand elsewhere.
    linked = sum(path.stat().st_size for path in folder.iterdir() if path.is_symlink() and path.is_file())
    return linked or folder_bytes(folder)


def main() -> int:
    """Lines of JSON; the exit code."""
    return answer(lambda say: fetched(parse_preset(sys.stdin.read()).preset, say))


if __name__ == "__main__":
    sys.exit(main())
