"""What screens can have done: the only way from a screen to processes, presets and files.

One small class, so that tests can put another in its place. Every method may block and may raise
`LlmtuiError` or `OSError`; screens call them from a thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from llmtui.core.runs.directory import RunDirectory

StopHow = Literal["checkpoint", "now", "kill"]


class Actions:
    """The real ones."""

    # --- runs

    def checkpoint(self, directory: RunDirectory) -> None:
        """Ask for a checkpoint at the next step's end."""
        from llmtui.core.process.stop import checkpoint

        checkpoint(directory)

    def stop(self, directory: RunDirectory, how: StopHow) -> None:
        """Ask the run to end."""
        from llmtui.core.process.stop import stop

        stop(directory, how)

    def resume(self, directory: RunDirectory) -> None:
        """Go on from the last good checkpoint."""
        from llmtui.core.process.launch import resume_run

        resume_run(directory)

    def export(self, directory: RunDirectory) -> Path:
        """Write the hand-over summary; the path of the file to hand over."""
        raise NotImplementedError

    def delete_run(self, directory: RunDirectory) -> None:
        """Remove an ended run with everything in it."""
        raise NotImplementedError
