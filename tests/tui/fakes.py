"""Actions that are only written down: screens are tested without processes."""

from __future__ import annotations

from pathlib import Path

from llmtui.core.errors import MachineError
from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.actions import Actions, PresetDetails, StopHow


class RecordedActions(Actions):
    """Reads presets for real; starts, stops, exports and deletes nothing."""

    def __init__(self, run: RunDirectory | None = None) -> None:
        self.done: list[str] = []
        self.fail = False
        self._run = run

    def _note(self, what: str) -> None:
        if self.fail:
            raise MachineError("no space left [/x]", place="the disk", hint="free 2 GiB")
        self.done.append(what)

    def start_run(self, details: PresetDetails) -> RunDirectory:
        self._note(f"start {details.name}")
        assert self._run is not None
        return self._run

    def checkpoint(self, directory: RunDirectory) -> None:
        self._note(f"checkpoint {directory.id}")

    def stop(self, directory: RunDirectory, how: StopHow) -> None:
        self._note(f"stop {how} {directory.id}")

    def resume(self, directory: RunDirectory) -> None:
        self._note(f"resume {directory.id}")

    def export(self, directory: RunDirectory) -> Path:
        self._note(f"export {directory.id}")
        return directory.path / "summary.md"

    def delete_run(self, directory: RunDirectory) -> None:
        self._note(f"delete {directory.id}")

    def edit_outside(self, path: Path) -> None:
        self._note(f"editor {path.name}")
