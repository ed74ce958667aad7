"""What a value means for the run, in a sentence with numbers, for the field under the cursor.

Only arithmetic on the preset and what the forecast knows (rows, steps); what is not known is left out or "–".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from llmtui.core import words
from llmtui.core.preset import Preset


@dataclass(frozen=True, slots=True)
class Known:
    """What a forecast adds to a preset: training rows, optimizer steps of the whole run, ranks; None = not known."""

    rows: int | None = None
    steps: int | None = None
    ranks: int | None = None


Effect = Callable[[Preset, Known], str]


def effect_of(key: str, preset: Preset | None, known: Known) -> str:
    """The sentence for this key, or nothing when there is nothing to compute."""
    effect = _EFFECTS.get(key)
    if effect is None or preset is None:
        return ""
    return effect(preset, known)


def _effective_batch(preset: Preset, known: Known) -> str:
    training = preset.training
    parts = f"{training.per_device_train_batch_size} per device × {training.gradient_accumulation_steps} accumulated"
    size = training.per_device_train_batch_size * training.gradient_accumulation_steps
    if known.ranks is None:
        return f"effective batch: {parts} × ranks"
    ranks = "1 rank" if known.ranks == 1 else f"{known.ranks} ranks"
    text = f"effective batch {size * known.ranks} = {parts} × {ranks}"
    return text + _steps_of(known)


def _steps_of(known: Known) -> str:
    return f"; {words.count(known.steps)} steps" if known.steps is not None else ""


def _length(preset: Preset, known: Known) -> str:
    training = preset.training
    if training.max_steps is not None and training.max_steps > 0:
        return f"{words.count(training.max_steps)} steps: max_steps wins over num_train_epochs"
    if known.steps is None:
        return ""
    rows = f" over {words.count(known.rows)} rows" if known.rows is not None else ""
    return f"{words.count(known.steps)} steps = {_plain(training.num_train_epochs)} epochs{rows}"


def _warmup(preset: Preset, known: Known) -> str:
    value = float(preset.training.warmup_steps)
    if value <= 0:
        return "no warm-up"
    if value >= 1:
        return f"{_plain(value)} steps of warm-up" + (f" of {words.count(known.steps)}" if known.steps else "")
    share = f"{100 * value:.3g} % of the steps are warm-up"
    return (
        f"{share}: {words.count(math.ceil(value * known.steps))} of {words.count(known.steps)}"
        if known.steps
        else share
    )


def _learning_rate(preset: Preset, known: Known) -> str:
    return (
        f"{preset.training.learning_rate:.3g} after the warm-up, then the schedule: {preset.training.lr_scheduler_type}"
    )


def _every(name: str, value: Callable[[Preset], float | None]) -> Effect:
    def effect(preset: Preset, known: Known) -> str:
        every = value(preset)
        if not every or not known.steps:
            return ""
        every = max(1, math.ceil(every * known.steps)) if every < 1 else every
        times = int(known.steps // every)
        return (
            f"{times} {name} in {words.count(known.steps)} steps"
            if times
            else f"never: the run has {known.steps} steps"
        )

    return effect


def _patience(preset: Preset, known: Known) -> str:
    patience, every = preset.training.early_stopping_patience, preset.training.eval_steps
    if not patience or not every or every < 1:
        return ""
    return f"stops after {_plain(patience * every)} steps without a better evaluation"


def _lora_scale(preset: Preset, known: Known) -> str:
    lora = preset.lora
    if lora is None:
        return ""
    root = bool(getattr(lora, "use_rslora", False))
    scale = lora.lora_alpha / (math.sqrt(lora.r) if root else lora.r)
    formula = "lora_alpha / sqrt(r)" if root else "lora_alpha / r"
    return f"the update is scaled by {scale:.3g} = {formula}"


def _tokens(preset: Preset, known: Known) -> str:
    length = preset.dataset.max_length if preset.dataset is not None else None
    if length is None:
        return ""
    training = preset.training
    size = training.per_device_train_batch_size * training.gradient_accumulation_steps * (known.ranks or 1)
    return f"at most {words.count(size * length)} tokens a step = {size} rows × {words.count(length)}"


def _val_size(preset: Preset, known: Known) -> str:
    size = preset.dataset.val_size if preset.dataset is not None else None
    if not size and preset.dataset is not None and preset.dataset.val is not None:
        return f"the validation rows are those of {preset.dataset.val}"
    if not size:
        return "no validation rows: no evaluation"
    kind = f"{100 * size:.3g} % of the rows" if size < 1 else f"{words.count(int(size))} rows"
    rest = f"; {words.count(known.rows)} are left to train on" if known.rows is not None else ""
    return f"{kind} are kept apart for evaluation{rest}"


_WEIGHT_BYTES: Final = {"int8": "1 byte", "nf4": "half a byte", "none": "2 bytes (4 in float32)"}


def _quantization(preset: Preset, known: Known) -> str:
    cost = _WEIGHT_BYTES.get(str(preset.model.quantization))
    return f"about {cost} per weight of the base model" if cost else ""


def _cells(preset: Preset, known: Known) -> str:
    sweep = preset.sweep
    if sweep is None:
        return ""
    axes = [len(getattr(sweep, name, None) or (1,)) for name in _SWEEP_AXES]
    cells = math.prod(axes)
    repeats = int(getattr(sweep, "repeats", 1) or 1)
    return f"{cells} points × {repeats} repeats = {cells * repeats} measurements"


_SWEEP_AXES: Final = ("input_tokens", "output_tokens", "batch_sizes", "quantizations", "splits")


def _kept(preset: Preset, known: Known) -> str:
    limit = preset.checkpoints.save_total_limit
    return "all checkpoints stay on the disk" if not limit else f"at most {limit} checkpoints stay on the disk"


def _plain(value: float) -> str:
    return f"{value:g}"


_EFFECTS: Final[dict[str, Effect]] = {
    "training.per_device_train_batch_size": _effective_batch,
    "training.gradient_accumulation_steps": _effective_batch,
    "gpu_split.processes": _effective_batch,
    "gpu_split.gpus": _effective_batch,
    "gpu_split.strategy": _effective_batch,
    "gpu_split.keep": _effective_batch,
    "training.num_train_epochs": _length,
    "training.max_steps": _length,
    "training.warmup_steps": _warmup,
    "training.learning_rate": _learning_rate,
    "training.lr_scheduler_type": _learning_rate,
    "training.eval_steps": _every("evaluations", lambda preset: preset.training.eval_steps),
    "training.logging_steps": _every("lines of the log", lambda preset: preset.training.logging_steps),
    "training.early_stopping_patience": _patience,
    "checkpoints.save_steps": _every("checkpoints", lambda preset: preset.checkpoints.save_steps),
    "checkpoints.save_total_limit": _kept,
    "lora.r": _lora_scale,
    "lora.lora_alpha": _lora_scale,
    "lora.use_rslora": _lora_scale,
    "dataset.max_length": _tokens,
    "dataset.val_size": _val_size,
    "model.quantization": _quantization,
    **{f"sweep.{name}": _cells for name in (*_SWEEP_AXES, "repeats")},
}
