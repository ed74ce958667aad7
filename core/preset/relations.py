"""What keys say about each other: contradictions are problems, harmless mismatches are put right and said."""

from __future__ import annotations

from collections.abc import Set

from llmtui.core.errors import Problem
from llmtui.core.preset.schema import Preset


def _problem(field: str, value: object, problem: str, cure: str) -> Problem:
    return Problem("", None, field, str(value), problem, cure)


def relations(preset: Preset) -> list[Problem]:
    """Problems between keys, without a file or line yet."""
    found: list[Problem] = []
    training, dataset, checkpoints, split = preset.training, preset.dataset, preset.checkpoints, preset.gpu_split
    evaluated = dataset.val_size > 0 or dataset.val is not None
    if preset.task == "finetune" and not dataset.name_or_path and not dataset.sources:
        found.append(_problem("dataset.name_or_path", "", "there is no data", "name a file, a folder or a hub set"))
    if not evaluated:
        if checkpoints.result == "best":
            found.append(
                _problem(
                    "checkpoints.result", "best", "best needs evaluations", "set dataset.val_size, or result: last"
                )
            )
        if training.early_stopping_patience is not None:
            found.append(_problem("training.early_stopping_patience", training.early_stopping_patience,
                                  "early stopping needs evaluations", "set dataset.val_size, or remove it"))  # fmt: skip
    elif training.eval_steps is None and training.early_stopping_patience is not None:
        found.append(_problem("training.early_stopping_patience", training.early_stopping_patience,
                              "early stopping needs evaluations during training", "set training.eval_steps"))  # fmt: skip
    if split.strategy == "single" and isinstance(split.gpus, list) and len(split.gpus) > 1:
        found.append(
            _problem(
                "gpu_split.gpus", split.gpus, "strategy single uses one card", "name one card, or choose a strategy"
            )
        )
    if split.strategy == "single" and (split.processes or 1) > 1:
        found.append(
            _problem(
                "gpu_split.processes",
                split.processes,
                "strategy single runs one process",
                "choose ddp, zero2, zero3 or fsdp",
            )
        )
    if split.max_memory and split.strategy != "layers":
        found.append(
            _problem(
                "gpu_split.max_memory",
                dict(split.max_memory),
                "max_memory is for strategy layers",
                "set gpu_split.strategy: layers, or remove it",
            )
        )
    if preset.model.quantization != "none" and preset.lora is None and preset.task == "finetune":
        found.append(
            _problem(
                "model.quantization",
                preset.model.quantization,
                "quantised weights cannot be trained whole",
                "add a lora section, or quantization: none",
            )
        )
    if preset.model.quantization == "none" and preset.model.compute_dtype != "auto":
        found.append(
            _problem(
                "model.compute_dtype",
                preset.model.compute_dtype,
                "compute_dtype is for nf4",
                "set quantization: nf4, or remove it",
            )
        )
    if preset.generation.min_new_tokens > preset.generation.max_new_tokens:
        found.append(
            _problem(
                "generation.min_new_tokens",
                preset.generation.min_new_tokens,
                "is more than max_new_tokens",
                "make it smaller",
            )
        )
    return found


def adjust(preset: Preset, written: Set[str]) -> tuple[Preset, list[str]]:
    """Put harmless mismatches right; the sentences say what was done.

    Args:
        written: the dotted keys that the file or `--set` holds.
    """
    said: list[str] = []
    training, checkpoints, generation = preset.training, preset.checkpoints, preset.generation
    if training.max_steps is not None and "training.num_train_epochs" in written:
        said.append(
            f"training.max_steps ({training.max_steps}) wins over num_train_epochs ({training.num_train_epochs:g})"
        )
    evaluated = preset.dataset.val_size > 0 or preset.dataset.val is not None
    if not evaluated and training.eval_steps is not None:
        said.append("there are no validation rows (dataset.val_size: 0), so eval_steps is not used")
        training = training.model_copy(update={"eval_steps": None})
    if evaluated and checkpoints.result == "best":
        every = training.eval_steps or checkpoints.save_steps
        if checkpoints.save_steps % every:
            rounded = max(every, round(checkpoints.save_steps / every) * every)
            said.append(f"result: best needs a save at an eval: save_steps {checkpoints.save_steps} becomes {rounded}")
            checkpoints = checkpoints.model_copy(update={"save_steps": rounded})
    if generation.temperature == 0 and generation.do_sample:
        said.append("generation.temperature 0 means greedy: do_sample becomes false")
        generation = generation.model_copy(update={"do_sample": False, "temperature": 1.0})
    changed = {"training": training, "checkpoints": checkpoints, "generation": generation}
    return preset.model_copy(update=changed), said
