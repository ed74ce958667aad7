"""Reads run directories: one run's state as it grows, all runs, and the run a user means."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from llmtui.core.errors import DataError, RefusedError, UsageError
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.fold import Fold
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.state import Liveness, RunState


def liveness(directory: RunDirectory) -> Liveness:
    """Who lives, asked from the kernel without taking anything."""
    return Liveness(supervisor=locks.is_held(directory.supervisor_lock), worker=locks.is_held(directory.worker_lock))


class RunReader:
    """Follows one run; `poll` reads only what is new.

    Raises:
        DataError: `run.json` is missing or damaged.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self._fold = Fold(directory.info())
        self._readers = (EventReader(directory.events), EventReader(directory.monitor))
        self.caught_up = False

    def poll(self, limit_bytes: int | None = None) -> RunState:
        """Read new events and give the state.

        Args:
            limit_bytes: read at most about this much of each file; `caught_up` says whether all was read.
        """
        # Locks first: a run that ends between the two looks is then "alive with a last word", never
        # "dead without one".
        alive = liveness(self.directory)
        before = [reader.offset for reader in self._readers]
        for reader in self._readers:
            for event in reader.read_new(limit_bytes):
                self._fold.apply(event)
        read = max(r.offset - b for r, b in zip(self._readers, before, strict=True))
        self.caught_up = limit_bytes is None or read < limit_bytes
        return self._fold.snapshot(alive)


def read_state(directory: RunDirectory) -> RunState:
    """The state of a run, read once."""
    return RunReader(directory).poll()


def run_directories(runs: Path) -> list[RunDirectory]:
    """All runs, oldest first: ids begin with their second, `created` in `run.json` decides within one."""
    found = sorted(path for path in runs.iterdir() if (path / "run.json").is_file())
    ordered: list[RunDirectory] = []
    for _, same_second in groupby(found, key=lambda path: path.name[:15]):
        directories = [RunDirectory(path) for path in same_second]
        ordered += sorted(directories, key=_created) if len(directories) > 1 else directories
    return ordered


def _created(directory: RunDirectory) -> float:
    try:
        return directory.info().created
    except DataError:
        return 0.0


def find_run(runs: Path, reference: str, *, destructive: bool = False) -> tuple[RunDirectory, int | None, str]:
    """The run a user means: an id, else a `--name`, else a preset (its latest), or `last`; `@STEP` after it.

    Returns:
        The run, the step after `@` or None, and a sentence when the reference was not an id.

    Raises:
        UsageError: there is no such run.
        RefusedError: it is ambiguous and `destructive` is asked.
    """
    name, step = _split_step(reference)
    everything = run_directories(runs)
    if name == "last":
        if not everything:
            raise UsageError("there is no run yet", hint="start one: llmtui run demo")
        return everything[-1], step, f"last is {everything[-1].id}"
    matches = [d for d in everything if d.id == name]
    for attribute in ("name", "preset"):
        matches = matches or [d for d in everything if _info_field(d, attribute) == name]
    matches = matches or [d for d in everything if d.id.startswith(name) and len(name) >= 8]
    if not matches:
        raise UsageError(f'there is no run "{name}"', hint="llmtui ls shows the runs")
    if len(matches) > 1 and destructive:
        ids = ", ".join(d.id for d in matches[-5:])
        raise RefusedError(f'"{name}" means {len(matches)} runs', place=name, hint=f"name one by its id: {ids}")
    chosen = matches[-1]
    return chosen, step, "" if chosen.id == name else f"{name} is {chosen.id}"


def _split_step(reference: str) -> tuple[str, int | None]:
    name, at, step = reference.rpartition("@")
    if not at:
        return reference, None
    if not (step.isascii() and step.isdigit()):
        raise UsageError(f'"{step}" is not a step', place=reference, hint="write RUN@STEP, such as last@200")
    return name, int(step)


def _info_field(directory: RunDirectory, attribute: str) -> str:
    try:
        return str(getattr(directory.info(), attribute))
    except DataError:
        return ""
