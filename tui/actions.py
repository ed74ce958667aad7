"""What screens can have done: the only way from a screen to processes, presets and files.

One small class, so that tests can put another in its place. Every method may block and may raise
`LlmtuiError` or `OSError`; screens call them from a thread. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llmtui.core.errors import LlmtuiError, PresetError, Problem
from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.widgets.facts_pane import Fact

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from llmtui.core.data.preview import Preview
    from llmtui.core.data.statistics import Statistics
    from llmtui.core.forecast import Forecast
    from llmtui.core.preset import LoadedPreset, PresetEntry
    from llmtui.core.process.child import Progress

StopHow = Literal["checkpoint", "now", "kill"]


@dataclass(frozen=True, slots=True)
class PresetDetails:
    """A preset read: its facts, and the problems that keep it from being run."""

    name: str
    path: Path
    facts: tuple[Fact, ...]
    problems: tuple[Problem, ...] = ()
    loaded: LoadedPreset | None = None


@dataclass(frozen=True, slots=True)
class DataFound:
    """What a preset is trained on: counted, and to be looked at row by row."""

    counted: Statistics
    preview: Preview
    notes: tuple[str, ...] = ()


class Actions:
    """The real ones."""

    # --- presets

    def presets(self) -> tuple[PresetEntry, ...]:
        """The library."""
        from llmtui.core.preset import list_presets

        return tuple(list_presets())

    def preset_details(self, path: Path) -> PresetDetails:
        """What a preset does, whether it fits, what is wrong with it."""
        from llmtui.core.preset import load_preset, unsupported
        from llmtui.tui.preset_facts import FIRST, facts_of, forecast_facts, problem_facts

        try:
            loaded = load_preset(str(path))
        except PresetError as error:
            return PresetDetails(path.stem, path, tuple(problem_facts(error.problems)), error.problems)
        problems = tuple(unsupported(loaded.preset, path.name, loaded.lines))
        whole = facts_of(loaded)
        try:
            forecast = forecast_facts(self.forecast(loaded))
        except (LlmtuiError, OSError) as error:
            forecast = [Fact("forecast", f"not possible: {error}", "warn")]
        first = [fact for fact in forecast if fact.name.startswith(FIRST)]
        later = [fact for fact in forecast if fact not in first]
        facts = [*problem_facts(problems), *whole[:2], *first, *whole[2:], *later]
        return PresetDetails(path.stem, path, tuple(facts), problems, loaded)

    def forecast(self, loaded: LoadedPreset) -> Forecast:
        """The arithmetic forecast, judged against the cards of this machine."""
        from llmtui.core.forecast import forecast
        from llmtui.tui.machine import cards

        return forecast(loaded.preset, loaded.folder, cards())

    def data(
        self, loaded: LoadedPreset, on_progress: Progress, begun: Callable[[subprocess.Popen[str]], None]
    ) -> DataFound:
        """The rows as the run will get them, prepared now by a child or found; `begun` is given that child."""
        from llmtui.core.data.preview import Preview
        from llmtui.core.data.statistics import statistics
        from llmtui.core.process.preparing import prepared_data

        prepared = prepared_data(loaded, on_progress, begun)
        return DataFound(statistics(prepared, loaded.preset), Preview(prepared), tuple(prepared.warnings))

    def own_copy(self, entry: PresetEntry) -> Path:
        """The user's own file of this preset, made if there is none yet."""
        from llmtui.core.preset import copy_to_user
        from llmtui.core.preset.library import preset_path

        if entry.origin == "user":
            return entry.path
        own = preset_path(entry.name)
        return own if own.exists() else copy_to_user(entry.path, entry.name)

    def edit_outside(self, path: Path) -> None:
        """Open the file in `$VISUAL`, `$EDITOR` or the first editor there is; returns when it is closed."""
        import os
        import shlex
        import shutil
        import subprocess

        from llmtui.core.errors import MachineError

        named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        found = next((name for name in ("nano", "vim", "vi") if shutil.which(name)), None)
        command = shlex.split(named) if named else [found] if found else []
        if not command:
            raise MachineError("no editor was found", hint="set EDITOR, or press e for the form")
        try:
            subprocess.run([*command, str(path)], check=False)
        except FileNotFoundError as error:
            raise MachineError(
                f"the editor {command[0]} was not found", hint="set EDITOR to one that is there"
            ) from error

    def delete_preset(self, entry: PresetEntry) -> None:
        """Remove a preset of the user's own."""
        entry.path.unlink(missing_ok=True)

    # --- runs

    def start_run(self, details: PresetDetails) -> RunDirectory:
        """Start a detached run of a preset."""
        from llmtui.core.process.launch import start_run

        assert details.loaded is not None
        return start_run(details.loaded)

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

    def adopt_orphans(self, runs: Path) -> list[str]:
        """Start a supervisor for every worker that lives without one; their ids."""
        from llmtui.core.process.adopting import adopt_orphans

        if not runs.is_dir():
            return []
        return [directory.id for directory in adopt_orphans(runs)]

    def export(self, directory: RunDirectory) -> Path:
        """Write the hand-over into the working folder (else into the run's own); the file's path."""
        from llmtui.core.files import write_atomically
        from llmtui.core.runs.exporting import export_text

        text = export_text(directory, "md").encode()
        here = Path.cwd() / f"{directory.id}.md"
        try:
            write_atomically(here, text, mode=0o644)
        except OSError:
            here = directory.path / "export.md"
            write_atomically(here, text, mode=0o644)
        return here

    def delete_run(self, directory: RunDirectory) -> None:
        """Remove an ended run with everything in it."""
        from llmtui.core.runs.deleting import delete_run

        delete_run(directory)
