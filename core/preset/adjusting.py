"""Harmless mismatches put right; the sentences say what was done."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from llmtui.core.preset.schema import Preset


def adjust(preset: Preset, written: Collection[str]) -> tuple[Preset, list[str]]:
    """Put harmless mismatches right.

    Args:
        written: the dotted keys that the file or `--set` holds.

    Returns:
        The preset as it will be run, and a sentence for each thing that differs from what is written. The returned
        preset, written out and read again, is itself and needs no sentence.
    """
    said: list[str] = []
    changes: dict[str, dict[str, Any]] = {"training": {}, "checkpoints": {}, "generation": {}}
    training, checkpoints, generation = preset.training, preset.checkpoints, preset.generation
    if training.max_steps is not None and "training.num_train_epochs" in written:
        epochs = f"{training.num_train_epochs:g}"
        said.append(f"training.max_steps ({training.max_steps}) wins over num_train_epochs ({epochs})")
    evaluated = preset.dataset.val_size > 0 or preset.dataset.val is not None
    every = training.eval_steps
    if not evaluated and every is not None:
        said.append("there are no validation rows (dataset.val_size: 0), so eval_steps is not used")
        changes["training"]["eval_steps"] = every = None
    if evaluated and checkpoints.result == "best":
        if every is None:
            every = checkpoints.save_steps
            said.append(f"result: best compares evaluations: eval_steps becomes {every}, as save_steps")
            changes["training"]["eval_steps"] = every
        if checkpoints.save_steps % every:
            rounded = max(every, round(checkpoints.save_steps / every) * every)
            said.append(f"result: best needs a save at an eval: save_steps {checkpoints.save_steps} becomes {rounded}")
            changes["checkpoints"]["save_steps"] = rounded
    if generation.temperature == 0 and generation.do_sample:
        said.append("generation.temperature 0 means greedy: do_sample becomes false")
        changes["generation"] = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
    sections = {
        name: getattr(preset, name).model_copy(update=update) for name, update in changes.items() if update
    }  # fmt: skip
    return preset.model_copy(update=sections), said
