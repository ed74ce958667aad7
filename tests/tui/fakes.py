"""Actions that are only written down: screens are tested without processes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from llmtui.core.errors import DataError, MachineError
from llmtui.core.forecast import Forecast, GpuVerdict, Part
from llmtui.core.preset import LoadedPreset
from llmtui.core.process.child import Progress
from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.actions import Actions, DataFound, PresetDetails, StopHow


class FixedForecast(Actions):
    """The real ones, but for a forecast that stays the same when its arithmetic is refined."""

    def forecast(self, loaded: LoadedPreset) -> Forecast:
        parts = (Part("weights", 7 << 30), Part("adapter", 16 << 20), Part("activations", 3 << 30))
        card = GpuVerdict(0, "NVIDIA A100-SXM4-80GB", 80 << 30, 78 << 30, "fits")
        return Forecast(
            source="test", parameters=6_876_176_384, trainable=4_194_304, parts=parts, allocated=10 << 30,
            process=11 << 30,
            checkpoint_bytes=50 << 20, disk_bytes=220 << 20, effective_batch=8, rows=13_015, steps_per_epoch=1_627,
            total_steps=4_881, gpus=(card,), notes=("an estimate",),
        )  # fmt: skip

    def adopt_orphans(self, runs: Path) -> list[str]:
        return []


class RecordedActions(FixedForecast):
    """Reads presets for real; starts, stops, exports and deletes nothing."""

    def __init__(self, run: RunDirectory | None = None, found: DataFound | None = None) -> None:
        self.done: list[str] = []
        self.fail = False
        self._run = run
        self._found = found

    def _note(self, what: str) -> None:
        if self.fail:
            raise MachineError("no space left [/x]", place="the disk", hint="free 2 GiB")
        self.done.append(what)

    def data(
        self, loaded: LoadedPreset, on_progress: Progress, begun: Callable[[subprocess.Popen[str]], None]
    ) -> DataFound:
        self._note(f"data {loaded.name}")
        if self._found is None:
            raise DataError("no such file", place="/data/[x]/rows.jsonl", hint="the nearest is rows2.jsonl")
        return self._found

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
