"""The summary, written by a child when the run has ended: it imports matplotlib, the supervisor never does."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from llmtui.core.runs.directory import RunDirectory

_LIMIT: Final = 120.0


def write_summary(directory: RunDirectory) -> str:
    """Have it written; why it could not be, empty when it was."""
    command = [sys.executable, "-P", "-m", "llmtui.core.runs.summarize", str(directory.path)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=_LIMIT, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it took longer than {_LIMIT:g} s"
    except OSError as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else lines[-1] if lines else f"exit code {done.returncode}"
