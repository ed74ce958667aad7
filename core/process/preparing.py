"""A preset's data, prepared by a child as the worker would prepare it, and kept for the run to come."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmtui.core.data.prepare import Prepared, open_prepared
from llmtui.core.preset import LoadedPreset, resolve
from llmtui.core.process.child import Progress, ask_child


def prepared_data(
    loaded: LoadedPreset, on_progress: Progress, begun: Callable[[subprocess.Popen[str]], None] = lambda _: None
) -> Prepared:
    """The rows that the preset trains on, made now or found.

    Args:
        begun: given the child, for those who may want to kill it.

    Raises:
        LlmtuiError: with place and cure.
    """
    answer = _asked("preparing", "preparing the data", loaded, on_progress, begun)
    return open_prepared(Path(answer["folder"]))


def fetch_all(loaded: LoadedPreset, on_progress: Progress) -> dict[str, Any]:
    """Bring everything here that the preset's run needs; what is here then, as `core.worker.fetching` says it.

    Raises:
        LlmtuiError: with place and cure.
    """
    return _asked("fetching", "fetching", loaded, on_progress, lambda _: None)


def _asked(
    module: str, what: str, loaded: LoadedPreset, on_progress: Progress, begun: Callable[[subprocess.Popen[str]], None]
) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", f"llmtui.core.worker.{module}"]
    return ask_child(command, on_progress, what=what, place=loaded.name, text=resolve(loaded),
                     environment={"CUDA_VISIBLE_DEVICES": ""}, begun=begun)  # fmt: skip
