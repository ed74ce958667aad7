"""A run that makes no step: noticed, its stacks kept."""

from __future__ import annotations

import shutil
import subprocess
import time

from llmtui.core.files import write_atomically
from llmtui.core.runs.clock import boot_seconds
from llmtui.core.runs.directory import RunDirectory


class HangWatch:
    """Counts the time since the last new step; the first step may take as long as it likes."""

    def __init__(self, minutes: float | None) -> None:
        self._limit = None if minutes is None else minutes * 60
        self._step = 0
        self._since = boot_seconds()
        self.reported = False

    def note(self, step: int) -> None:
        """The newest step there is."""
        if step != self._step:
            self._step, self._since, self.reported = step, boot_seconds(), False

    @property
    def hung(self) -> bool:
        """Whether there was no step for longer than the preset allows, and nobody has said so yet."""
        if self._limit is None or self.reported or self._step == 0:
            return False
        return boot_seconds() - self._since > self._limit


def dump_stacks(pid: int, directory: RunDirectory) -> str:
    """Stacks of the worker into `stacks-<time>.txt`, with py-spy when it is there; what was done, in words."""
    tool = shutil.which("py-spy")
    if tool is None:
        return "its stacks can be read with py-spy, which is not installed"
    try:
        done = subprocess.run([tool, "dump", "--pid", str(pid)], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its stacks could not be read: {error}"
    name = f"stacks-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    write_atomically(directory.path / name, done.stdout + done.stderr)
    return f"its stacks are in {name}"
