"""What a preset does, in facts. Pure: a preset in, sentences out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from llmtui.core import words
from llmtui.core.errors import Problem
from llmtui.core.preset import LoadedPreset
from llmtui.core.preset.schema import Preset
from llmtui.tui.widgets.facts_pane import Fact

if TYPE_CHECKING:
    from llmtui.core.forecast import Forecast


def facts_of(loaded: LoadedPreset) -> list[Fact]:
    """Model, data, batch arithmetic, steps, checkpoints, cards."""
    preset = loaded.preset
    facts = [Fact("", preset.description or "(no description)", "text"), Fact("", "")]
    if preset.task != "finetune":
        facts.append(Fact("task", preset.task))
    facts += [Fact("model", _model(preset)), Fact("trains", _trained(preset))]
    if preset.dataset.name_or_path is not None:
        facts.append(Fact("data", _data(preset)))
    if preset.task == "finetune":
        facts += [
            Fact("batch", batch_words(preset), "strong"),
            Fact("length", _length(preset)),
            Fact("rate", _rate(preset)),
        ]
        facts += [Fact("evaluates", _evaluates(preset)), Fact("saves", _saves(preset))]
    facts.append(Fact("cards", _cards(preset)))
    facts += [Fact("note", warning, "warn") for warning in loaded.warnings]
    return facts


def batch_words(preset: Preset) -> str:
    """The arithmetic of the effective batch: `8 × 2 accumulated × 2 cards = 32 rows a step`."""
    training, processes = preset.training, preset.gpu_split.processes
    parts = [str(training.per_device_train_batch_size)]
    if training.gradient_accumulation_steps > 1:
        parts.append(f"{training.gradient_accumulation_steps} accumulated")
    if processes is not None and processes > 1:
        parts.append(f"{processes} processes")
    spread = processes is None and preset.gpu_split.strategy in ("ddp", "zero2", "zero3", "fsdp")
    total = training.per_device_train_batch_size * training.gradient_accumulation_steps * (processes or 1)
    if spread:
        return " × ".join([*parts, "cards"]) + f": {total} rows a step and card"
    if len(parts) == 1:
        return f"{total} rows a step"
    return " × ".join(parts) + f" = {total} rows a step"


def _model(preset: Preset) -> str:
    model = preset.model
    parts = [model.name_or_path]
    if model.revision:
        parts.append(f"at {model.revision}")
    if model.quantization != "none":
        parts.append(model.quantization)
    if model.dtype != "auto":
        parts.append(model.dtype)
    if model.trust_remote_code:
        parts.append("runs the model's own code")
    return " · ".join(parts)


def _trained(preset: Preset) -> str:
    if preset.task != "finetune":
        return "nothing"
    lora = preset.lora
    if lora is None:
        return "all weights (no lora section)"
    targets = lora.target_modules if isinstance(lora.target_modules, str) else ", ".join(lora.target_modules)
    dropout = f", dropout {lora.lora_dropout:g}" if lora.lora_dropout else ""
    return f"LoRA r {lora.r}, α {lora.lora_alpha:g}{dropout} on {targets}"


def _data(preset: Preset) -> str:
    data = preset.dataset
    parts = [str(data.name_or_path)]
    if data.limit is not None:
        parts.append(f"first {data.limit:,} rows")
    parts.append(f"template {data.template}")
    parts.append("learns the answer only" if data.train_on == "response" else "learns prompt and answer")
    return " · ".join(parts)


def _length(preset: Preset) -> str:
    longer = {"cut": "cut", "drop": "dropped", "split": "split"}[preset.dataset.on_long]
    return f"up to {preset.dataset.max_length:,} tokens, longer rows are {longer}"


def _rate(preset: Preset) -> str:
    training = preset.training
    steps = (
        f"{training.max_steps:,} steps" if training.max_steps is not None else f"{training.num_train_epochs:g} epochs"
    )
    warm = training.warmup_steps
    warmup = "" if not warm else f", warm-up {warm:.0%} of the steps" if warm < 1 else f", warm-up {warm:.0f} steps"
    return f"{training.learning_rate:g}, {training.lr_scheduler_type}{warmup}, for {steps}"


def _evaluates(preset: Preset) -> str:
    data, training = preset.dataset, preset.training
    if data.val is not None:
        held = f"on {data.val}"
    elif isinstance(data.val_size, int):
        if not data.val_size:
            return "never (val_size is 0)"
        held = f"on {data.val_size:,} rows held out"
    else:
        held = f"on {data.val_size:.0%} of the rows, held out"
    when = "at the end" if training.eval_steps is None else f"every {training.eval_steps:,} steps"
    prompts = len(training.sample_prompts)
    return f"{when} {held}" + (f", and answers {prompts} prompts" if prompts else "")


def _saves(preset: Preset) -> str:
    checkpoints = preset.checkpoints
    kept = "the newest" if checkpoints.save_total_limit == 1 else f"the newest {checkpoints.save_total_limit}"
    return f"every {checkpoints.save_steps:,} steps, keeps {kept}; the result is the {checkpoints.result} one"


def _cards(preset: Preset) -> str:
    split = preset.gpu_split
    if split.gpus == "none":
        return "none: the CPU"
    chosen = "chosen when it starts" if split.gpus == "auto" else ", ".join(str(gpu) for gpu in split.gpus)
    parts = [chosen]
    if split.strategy != "single":
        parts.append(split.strategy)
    parts += [f"{card}: at most {words.size(most)}" for card, most in split.max_memory.items()]
    return " · ".join(parts)


def problem_facts(problems: Sequence[Problem]) -> list[Fact]:
    """Each problem with its line and its cure."""
    facts: list[Fact] = []
    for problem in problems:
        line = f"line {problem.line}" if problem.line else ""
        field = f"{problem.field}: " if problem.field else ""
        facts.append(Fact(line or "problem", f"{field}{problem.problem}", "bad"))
        if problem.cure:
            facts.append(Fact("cure", problem.cure, "key"))
    return [*facts, Fact("", "")] if facts else []


FIRST: Final = ("GPU", "steps", "memory", "forecast")
"""Names of the facts that are asked for first: does it fit, how long is it?"""

_VERDICTS: Final = {"fits": "good", "tight": "warn", "does not fit": "bad", "unknown": "faint"}


def forecast_facts(found: Forecast) -> list[Fact]:
    """Whether it fits, steps, memory by part, disk; what the arithmetic cannot know is left out or "–"."""
    facts = []
    for card in found.gpus:
        room = f"{words.size(card.free)} free of {words.size(card.total)}"
        text = f"{card.verdict}: needs ≈ {words.size(found.process)}, {room} ({card.name})"
        facts.append(Fact(f"GPU {card.index}", text, _VERDICTS[card.verdict]))
    if found.total_steps is not None or found.rows is not None:
        epoch = f", {words.count(found.steps_per_epoch)} an epoch" if found.steps_per_epoch is not None else ""
        rows = f" ({words.count(found.rows)} rows)" if found.rows is not None else ""
        facts.append(Fact("steps", f"{words.count(found.total_steps)}{epoch}{rows}", "strong"))
    if found.parts:
        parts = " + ".join(f"{part.name} {words.size(part.bytes)}" for part in found.parts)
        facts.append(
            Fact(
                "memory",
                f"≈ {words.size(found.process)} on its card" if found.gpus else f"≈ {words.size(found.process)}",
            )
        )
        facts.append(Fact("of it", f"{parts}, and the process's own"))
    if found.disk_bytes is not None:
        facts.append(
            Fact("disk", f"≈ {words.size(found.disk_bytes)}, {words.size(found.checkpoint_bytes)} a checkpoint")
        )
    facts += [Fact("note", note, "faint") for note in found.notes]
    return facts
