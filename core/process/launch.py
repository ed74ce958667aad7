"""Starting runs: a new one, a resumed one, a fork."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

from llmtui.core.errors import LlmtuiError, MachineError, PresetError, RefusedError
from llmtui.core.home import runs_folder
from llmtui.core.preset import LoadedPreset, Preset, parse_preset, resolve, resolved_preset, unsupported
from llmtui.core.process.checking import check_cards, check_model
from llmtui.core.process.forking import checkpoint_to_fork, discard, take_over
from llmtui.core.process.interrupting import StartedAnyway, interrupts_held
from llmtui.core.process.spawning import spawn_supervisor
from llmtui.core.process.stop import wait_until_ended
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.reader import read_state, run_directories
from llmtui.core.runs.state import RunState

_LEAST_FREE_BYTES: Final = 200 << 20
_NAMES_LIMIT: Final = 40.0  # seconds: a supervisor says within 30 that it lives
_CLOSING_LIMIT: Final = 60.0  # seconds for a run that has ended to finish its summary


def check_start(loaded: LoadedPreset) -> None:
    """Refuse what cannot work, before anything is created.

    Raises:
        PresetError: keys that a later version will run.
        DataError: the model is not where the preset says, or the data cannot be trained on.
        MachineError: no disk space, or no such card.
    """
    from llmtui.core.data import check_dataset

    problems = unsupported(loaded.preset, loaded.path.name if loaded.path else "preset", loaded.lines)
    if problems:
        raise PresetError(problems)
    preset = resolved_preset(loaded)
    check_disk(preset, loaded.folder)
    check_model(preset, loaded.folder)
    check_dataset(preset, loaded.folder)
    check_cards(preset)


def check_disk(preset: Preset, base_folder: Path) -> None:
    """The disk has room for a checkpoint, the one written beside it, and the result; at least for 200 MiB.

    Raises:
        MachineError: it has not.
    """
    from llmtui.core.forecast import forecast

    runs = runs_folder()
    free = shutil.disk_usage(runs).free
    plan = forecast(preset, base_folder, ())
    needed = 2 * (plan.checkpoint_bytes or 0) + (plan.result_bytes or 0)
    if free < max(needed, _LEAST_FREE_BYTES):
        what = f"two checkpoints and the result take about {needed >> 20} MiB" if needed > _LEAST_FREE_BYTES else (
            f"a run needs {_LEAST_FREE_BYTES >> 20} MiB at least"
        )  # fmt: skip
        raise MachineError(f"only {free >> 20} MiB are free where runs are kept, and {what}", place=str(runs),
                           hint="free some space (llmtui rm), or set LLMTUI_HOME to another disk")  # fmt: skip


def start_run(loaded: LoadedPreset, *, name: str | None = None, command: Sequence[str] = ()) -> RunDirectory:
    """Create a run and start its supervisor, detached from every terminal.

    Args:
        name: its name, which no living run may have; without one the preset's, which may repeat.
        command: the command line it came from, for the record.

    Raises:
        RefusedError: a living run has this name.
        LlmtuiError: what `check_start` refuses, or the supervisor does not start.
        StartedAnyway: Ctrl-C came too late to change anything.
    """
    check_start(loaded)
    runs = runs_folder()
    with nullcontext() if name is None else _names_guard(runs):  # two at once must not both find the name free
        if name is not None:
            _refuse_living_namesake(runs, name)
        loaded = _pin_run(loaded)
        with interrupts_held() as came:
            directory = create_run(
                runs, resolve(loaded), name=name or loaded.name, preset_name=loaded.name, task=loaded.preset.task,
                description=loaded.preset.description, command=list(command),
            )  # fmt: skip
            spawn_supervisor(directory)
    if came:
        raise StartedAnyway(directory)
    return directory


def _names_guard(runs: Path) -> locks.Lock:
    """Held from the look at the living runs' names until the new run lives."""
    end = time.monotonic() + _NAMES_LIMIT
    while True:
        try:
            return locks.take(runs.with_name("names.lock"))
        except RefusedError:
            if time.monotonic() > end:
                raise RefusedError("another llmtui is starting a run just now", hint="try again in a moment") from None
            time.sleep(0.05)


def _refuse_living_namesake(runs: Path, name: str) -> None:
    for directory in run_directories(runs):
        if not locks.is_held(directory.supervisor_lock) and not locks.is_held(directory.worker_lock):
            continue
        try:
            taken = directory.info().name == name
        except LlmtuiError:
            continue
        if taken:
            raise RefusedError(f'a run named "{name}" is going on', place=directory.id,
                               hint=f"choose another --name, or end it first: llmtui stop {directory.id}")  # fmt: skip


def _pin_run(loaded: LoadedPreset) -> LoadedPreset:
    """`run:demo` means the latest finished run of that name now: write down which one that is."""
    model = loaded.preset.model
    if not model.name_or_path.startswith("run:"):
        return loaded
    directory = finished_run(model.name_or_path.removeprefix("run:"))
    pinned = model.model_copy(update={"name_or_path": f"run:{directory.id}"})
    return replace(loaded, preset=loaded.preset.model_copy(update={"model": pinned}))


def finished_run(reference: str) -> RunDirectory:
    """The latest run of this id, name or preset (or of all, for `last`) that has a result.

    Raises:
        RefusedError: there is none.
    """
    runs = runs_folder()
    matches = []
    for directory in run_directories(runs):
        try:
            info = directory.info()
        except LlmtuiError:
            continue
        if reference in ("last", directory.id, info.name, info.preset):
            matches.append(directory)
    for directory in reversed(matches):
        if directory.model.is_dir() or directory.adapter.is_dir():
            return directory
    what = f"run {matches[-1].id} has no result yet" if matches else f'there is no run "{reference}"'
    hint = f"run it first: llmtui run {reference}" if reference != "last" else "run a preset first: llmtui run demo"
    raise RefusedError(f"the model is run:{reference}, and {what}", place="model.name_or_path", hint=hint)


def resume_run(directory: RunDirectory) -> RunState:
    """Go on in place from the last good checkpoint (from the beginning when there is none).

    Raises:
        RefusedError: it lives, or it has finished with nothing left to train, or another resume was first.
        MachineError: no disk space, no such card, or the supervisor does not start.
    """
    state = read_state(directory)
    if state.alive and state.final:  # only its summary is still being written
        state = wait_until_ended(directory, _CLOSING_LIMIT)
    check_resumable(directory, state)
    preset = parse_preset(directory.preset_text(), directory.preset).preset
    check_disk(preset, directory.path)
    check_cards(preset)
    with interrupts_held() as came:
        spawn_supervisor(directory)
    if came:
        raise StartedAnyway(directory)
    return state


def check_resumable(directory: RunDirectory, state: RunState) -> None:
    """Refuse a resume of a run that lives, or has finished.

    Raises:
        RefusedError: with what to do instead.
    """
    if state.alive:
        raise RefusedError(f"{directory.id} is {state.state}", place=directory.id,
                           hint=f"llmtui attach {directory.id} shows it")  # fmt: skip
    if state.state == "finished":
        raise RefusedError(
            f"{directory.id} has finished: nothing is left to train", place=directory.id,
            hint=f"for more, as a new run: llmtui resume {directory.id} --set training.num_train_epochs=…",
        )  # fmt: skip


def fork_run(
    directory: RunDirectory, *, from_step: int | None = None, sets: Sequence[str] = (), command: Sequence[str] = ()
) -> RunDirectory:
    """A new run that starts from a checkpoint of this one; the parent is not written to.

    With settings that the optimizer's state does not depend on, the whole state is taken over and the curve goes on;
    else only the weights are.

    Raises:
        RefusedError: there is no whole checkpoint (of that step).
        LlmtuiError: what `check_start` refuses, the checkpoint cannot be copied, or the supervisor does not start.
    """
    checkpoint, step = checkpoint_to_fork(directory, from_step)
    loaded = parse_preset(directory.preset_text(), directory.preset, sets)
    check_start(loaded)
    loaded = _pin_run(loaded)
    info = directory.info()
    with interrupts_held() as came:
        child = create_run(
            runs_folder(), resolve(loaded), name=info.name, preset_name=info.preset, task=loaded.preset.task,
            description=loaded.preset.description, command=list(command), parent=directory.id, parent_step=step,
        )  # fmt: skip
        try:
            take_over(directory, child, checkpoint, step, loaded)
        except BaseException:
            discard(child)
            raise
        if came:  # a long copy was interrupted: nothing has started yet
            discard(child)
            raise KeyboardInterrupt
        spawn_supervisor(child)
    if came:
        raise StartedAnyway(child)
    return child
