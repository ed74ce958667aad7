"""A preset's data, prepared by a child as the worker would prepare it, and kept for the run to come."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
    command = [sys.executable, "-P", "-m", "llmtui.core.worker.preparing"]
    answer = ask_child(command, on_progress, what="preparing the data", place=loaded.name, text=resolve(loaded),
                       environment={"CUDA_VISIBLE_DEVICES": ""}, begun=begun)  # fmt: skip
    return open_prepared(Path(answer["folder"]))
