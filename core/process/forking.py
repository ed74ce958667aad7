"""What a forked run takes over from its parent: one whole checkpoint, all of its state or only the weights."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from llmtui.core.errors import MachineError, RefusedError
from llmtui.core.files import write_atomically
from llmtui.core.preset import LoadedPreset, Preset, parse_preset
from llmtui.core.process.starting import FORK_FILE, Fork
from llmtui.core.runs.checkpoints import find_valid, verify
from llmtui.core.runs.directory import RunDirectory

# Training keys the optimizer's and the schedule's saved state depend on.
_BOUND = ("per_device_train_batch_size", "gradient_accumulation_steps", "learning_rate", "lr_scheduler_type",
          "weight_decay", "warmup_steps", "seed", "train_sampling_strategy")  # fmt: skip


def checkpoint_to_fork(parent: RunDirectory, step: int | None) -> tuple[Path, int]:
    """The newest whole checkpoint, or the whole one of that step.

    Raises:
        RefusedError: there is none.
    """
    found = find_valid(parent, step)
    if found.path is None or found.step is None:
        which = f"checkpoint of step {step}" if step is not None else "whole checkpoint"
        detail = f" ({'; '.join(found.passed_over)})" if found.passed_over else ""
        raise RefusedError(f"{parent.id} has no {which}{detail}", place=parent.id,
                           hint=f"llmtui show {parent.id} lists them")  # fmt: skip
    return found.path, found.step


def take_over(parent: RunDirectory, child: RunDirectory, checkpoint: Path, step: int, loaded: LoadedPreset) -> None:
    """Put the parent's checkpoint into the child's directory and write down what is taken from it.

    Raises:
        MachineError: it cannot be copied, or the copy is damaged.
    """
    origin = child.path / "origin" / checkpoint.name
    try:
        # Checkpoints are never written into again, so a hard link is a copy that costs nothing; rotation and rm of
        # the parent do not take it away.
        shutil.copytree(checkpoint, origin, copy_function=_link)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MachineError(f"the checkpoint cannot be copied: {reason}", place=str(checkpoint),
                           hint="check the disk; a running parent may just have rotated it") from error  # fmt: skip
    if problem := verify(origin, parent.id):
        raise MachineError(f"the checkpoint could not be copied: {problem}", place=str(origin), hint="check the disk")
    old = parse_preset(parent.preset_text(), parent.preset).preset
    fork = Fork(checkpoint=str(origin), step=step, weights_only=state_does_not_fit(old, loaded.preset))
    write_atomically(child.path / FORK_FILE, msgspec.json.encode(fork))


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)
    return target


def state_does_not_fit(old: Preset, new: Preset) -> bool:
    """Whether the optimizer's state fits no more: what is trained, or how steps are cut, has changed."""
    return (
        old.lora != new.lora
        or old.model != new.model
        or old.dataset != new.dataset
        or any(getattr(old.training, key) != getattr(new.training, key) for key in _BOUND)
    )


def discard(child: RunDirectory) -> None:
    """Take away a child that never started."""
    shutil.rmtree(child.path, ignore_errors=True)
