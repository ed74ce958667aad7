"""The command as a user gives it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def llmtui(
    *arguments: str, folder: Path | None = None, stdin: str | None = None, env: dict[str, str] | None = None
) -> Done:
    """Run a command to its end, without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "llmtui.tui.commands", *arguments], capture_output=True, encoding="utf-8", timeout=120,
        cwd=folder, env=os.environ | (env or {}), check=False,
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)
