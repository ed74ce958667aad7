"""Starting runs: a new one, a resumed one, a fork; and adopting a worker whose supervisor was killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from llmtui.core.errors import LlmtuiError, MachineError, PresetError, RefusedError
from llmtui.core.files import write_atomically
from llmtui.core.home import runs_folder
from llmtui.core.preset import LoadedPreset, parse_preset, resolve, unsupported
from llmtui.core.process.checking import check_cards, check_model
from llmtui.core.process.starting import FORK_FILE, Fork
from llmtui.core.runs import locks
from llmtui.core.runs.checkpoints import find_valid, verify
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.reader import find_run, read_state, run_directories
from llmtui.core.runs.state import RunState

_START_LIMIT: Final = 10.0
_LEAST_FREE_BYTES: Final = 200 << 20


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
    runs = runs_folder()
    free = shutil.disk_usage(runs).free
    if free < _LEAST_FREE_BYTES:
        raise MachineError(f"only {free >> 20} MiB are free where runs are kept", place=str(runs),
                           hint="free some space, or set LLMTUI_HOME to another disk")  # fmt: skip
    from llmtui.core.preset import resolved_preset

    preset = resolved_preset(loaded)
    check_model(preset, loaded.folder)
    check_dataset(preset, loaded.folder)
    check_cards(preset)


def start_run(loaded: LoadedPreset, *, name: str | None = None, command: Sequence[str] = ()) -> RunDirectory:
    """Create a run and start its supervisor, detached from every terminal.

    Raises:
        RefusedError: a living run has this name.
        LlmtuiError: what `check_start` refuses, or the supervisor does not start.
    """
    check_start(loaded)
    runs = runs_folder()
    if name is not None:
        _refuse_living_namesake(runs, name)
    loaded = _pin_run(loaded)
    directory = create_run(
        runs, resolve(loaded), name=name or loaded.name, preset_name=loaded.name, task=loaded.preset.task,
        description=loaded.preset.description, command=list(command),
    )  # fmt: skip
    spawn_supervisor(directory)
    return directory


def _refuse_living_namesake(runs: Path, name: str) -> None:
    for directory in run_directories(runs):
        if locks.is_held(directory.supervisor_lock) or locks.is_held(directory.worker_lock):
            try:
                if directory.info().name == name:
                    raise RefusedError(f'a run named "{name}" is going on', place=directory.id,
                                       hint="choose another --name, or stop it")  # fmt: skip
            except RefusedError:
                raise
            except LlmtuiError:
                continue


def _pin_run(loaded: LoadedPreset) -> LoadedPreset:
    """`run:demo` means the latest finished run of that name now: write down which one that is."""
    model = loaded.preset.model
    if not model.name_or_path.startswith("run:"):
        return loaded
    reference = model.name_or_path.removeprefix("run:")
    directory = finished_run(reference)
    pinned = loaded.preset.model_copy(
        update={"model": model.model_copy(update={"name_or_path": f"run:{directory.id}"})}
    )
    return replace(loaded, preset=pinned)


def finished_run(reference: str) -> RunDirectory:
    """The latest run of this id, name or preset that has a result.

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
        if reference in (directory.id, info.name, info.preset):
            matches.append(directory)
    for directory in reversed(matches):
        if directory.model.is_dir() or directory.adapter.is_dir():
            return directory
    if reference == "last":
        return find_run(runs, "last")[0]
    what = f"run {matches[-1].id} has no result yet" if matches else f'there is no run "{reference}"'
    raise RefusedError(f"the model is run:{reference}, and {what}", place="model.name_or_path",
                       hint=f"run it first: llmtui run {reference}")  # fmt: skip


def resume_run(directory: RunDirectory) -> RunState:
    """Go on from the last good checkpoint (from the beginning when there is none).

    Raises:
        RefusedError: it lives, or it has finished with nothing left to train, or another resume was first.
    """
    state = read_state(directory)
    if state.alive:
        raise RefusedError(f"{directory.id} is {state.state}", place=directory.id, hint="llmtui attach shows it")
    if state.state == "finished":
        raise RefusedError(f"{directory.id} has finished: nothing is left to train", place=directory.id,
                           hint="fork it for more: llmtui resume RUN --set training.num_train_epochs=…")  # fmt: skip
    spawn_supervisor(directory)
    return state


def fork_run(
    directory: RunDirectory, *, from_step: int | None = None, sets: Sequence[str] = (), command: Sequence[str] = ()
) -> RunDirectory:
    """A new run that starts from a checkpoint of this one; the parent is not written to.

    With unchanged settings the whole state is taken over and the curve goes on; with changed ones too, as far as the
    checkpoint's own state allows (data order, optimizer and schedule come from it).

    Raises:
        RefusedError: there is no whole checkpoint (of that step).
    """
    found = find_valid(directory, from_step)
    if found.path is None or found.step is None:
        which = f"checkpoint of step {from_step}" if from_step is not None else "whole checkpoint"
        detail = f" ({'; '.join(found.passed_over)})" if found.passed_over else ""
        raise RefusedError(f"{directory.id} has no {which}{detail}", place=directory.id, hint="llmtui show lists them")
    loaded = parse_preset(directory.preset.read_text("utf-8"), directory.preset, sets)
    check_start(loaded)
    info = directory.info()
    child = create_run(
        runs_folder(), resolve(loaded), name=info.name, preset_name=info.preset, task=loaded.preset.task,
        description=loaded.preset.description, command=list(command), parent=directory.id, parent_step=found.step,
    )  # fmt: skip
    # A copy, so that rotation and rm of the parent cannot take it away.
    origin = child.path / "origin" / found.path.name
    shutil.copytree(found.path, origin)
    if problem := verify(origin):
        raise MachineError(f"the checkpoint could not be copied: {problem}", place=str(origin), hint="check the disk")
    fork = Fork(checkpoint=str(origin), step=found.step, weights_only=_changes_schedule(directory, loaded))
    write_atomically(child.path / FORK_FILE, msgspec.json.encode(fork))
    spawn_supervisor(child)
    return child


def _changes_schedule(directory: RunDirectory, loaded: LoadedPreset) -> bool:
    """Whether the optimizer's state fits no more: what is trained, or how steps are cut, has changed."""
    old = parse_preset(directory.preset.read_text("utf-8"), directory.preset).preset
    new = loaded.preset
    return (
        old.lora != new.lora
        or old.model != new.model
        or old.dataset != new.dataset
        or any(
            getattr(old.training, key) != getattr(new.training, key)
            for key in ("per_device_train_batch_size", "gradient_accumulation_steps", "learning_rate",
                        "lr_scheduler_type", "weight_decay", "warmup_steps", "seed", "train_sampling_strategy")
        )
    )  # fmt: skip


def spawn_supervisor(directory: RunDirectory) -> None:
    """Start the supervisor in a session of its own and wait until it holds its lock.

    Raises:
        RefusedError: another supervisor was first.
        MachineError: it does not start.
    """
    command = [sys.executable, "-m", "llmtui.core.process.supervise", str(directory.path)]
    log = directory.path / "supervisor.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=_working_folder(),
            umask=0o077,
        )  # fmt: skip
    end = time.monotonic() + _START_LIMIT
    before = _starts(directory)
    while time.monotonic() < end:
        if _owner(directory, child.pid, before):
            return
        code = child.poll()
        if code is not None:
            if _owner(directory, child.pid, before):
                return  # it was quick: the run has ended already
            if code == RefusedError.exit_code:
                raise RefusedError(f"another process is starting {directory.id}", place=directory.id,
                                   hint="llmtui ls shows it")  # fmt: skip
            text = log.read_text("utf-8", "replace").strip().splitlines()
            raise MachineError(f"the supervisor did not start: {text[-1] if text else f'exit code {code}'}",
                               place=str(log), hint="look into that file")  # fmt: skip
        time.sleep(0.02)
    raise MachineError("the supervisor did not start in time", place=str(log), hint="look into that file")


def _starts(directory: RunDirectory) -> int:
    try:
        return directory.monitor.stat().st_size
    except OSError:
        return 0


def _owner(directory: RunDirectory, pid: int, before: int) -> bool:
    """Whether the supervisor of this pid has written its first line."""
    try:
        with directory.monitor.open("rb") as file:
            file.seek(before)
            return f'"pid":{pid}'.encode() in file.read(1 << 16)
    except OSError:
        return False


def _working_folder() -> str:
    """Where the user stands (for the git state); a folder that is gone becomes /."""
    try:
        return os.getcwd()
    except OSError:
        return "/"
