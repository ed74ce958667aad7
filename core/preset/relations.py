"""What keys say about each other: contradictions are problems, harmless mismatches are put right and said.

A key that would not be used is a contradiction too: no option is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from llmtui.core.errors import Problem
from llmtui.core.preset.leaves import value_at
from llmtui.core.preset.paths import is_split_name, looks_like_path
from llmtui.core.preset.schema import CHAT_TEMPLATES, TEMPLATES, Preset
from llmtui.core.preset.wording import shown


@dataclass(frozen=True, slots=True)
class Relation:
    """A contradiction between keys: shown at `key`, judged only when it and `beside` are right by themselves."""

    key: str
    beside: tuple[str, ...]
    broken: Callable[[Preset], bool]
    problem: str
    cure: str


def _is_template(name: str) -> bool:
    if name.startswith("chat:"):
        return name.removeprefix("chat:") in CHAT_TEMPLATES
    return name in TEMPLATES or looks_like_path(name) or "/" in name


def _evaluated(p: Preset) -> bool:
    return p.dataset.val_size > 0 or p.dataset.val is not None


def _local(name: str) -> bool:
    return looks_like_path(name) or name.startswith("run:")


def _cards(p: Preset) -> list[int | str] | None:
    return p.gpu_split.gpus if isinstance(p.gpu_split.gpus, list) else None


def _one_kind(*groups: Collection[int | str]) -> bool:
    return len({type(card) for group in groups for card in group}) == 1


def _sampling(name: str, unused: Any) -> Relation:
    return Relation(
        f"generation.{name}", ("generation.do_sample",),
        lambda p: not p.generation.do_sample and getattr(p.generation, name) not in (unused, 0),
        "is used only when sampling", "add generation.do_sample: true, or remove it",
    )  # fmt: skip


_VAL: Final = ("dataset.val_size", "dataset.val")
_PATIENCE: Final = "training.early_stopping_patience"
_RELATIONS: Final = (
    Relation("dataset.name_or_path", ("task", "dataset.sources"),
             lambda p: p.task == "finetune" and not p.dataset.name_or_path and not p.dataset.sources,
             "there is no data to train on", "name a file, a folder or a hub set"),
    Relation("dataset.template", (), lambda p: not _is_template(p.dataset.template),
             "is no template", f"use one of {', '.join(TEMPLATES)}, a chat template by name "
             f"({', '.join('chat:' + name for name in CHAT_TEMPLATES)}), or the path of a jinja file"),
    Relation("dataset.config", ("dataset.name_or_path",),
             lambda p: p.dataset.config is not None and looks_like_path(p.dataset.name_or_path or ""),
             "is for hub sets, and the data is a file or folder", "remove it"),
    Relation("dataset.split", ("dataset.name_or_path",),
             lambda p: p.dataset.split != "train" and looks_like_path(p.dataset.name_or_path or ""),
             "is for hub sets, and the data is a file or folder", "remove it, or name the file"),
    Relation("dataset.val_size", ("dataset.val",), lambda p: p.dataset.val is not None and p.dataset.val_size > 0,
             "holds rows out, and dataset.val names other validation rows", "keep one of them"),
    Relation("dataset.val", ("dataset.name_or_path",), lambda p: p.dataset.val is not None
             and is_split_name(p.dataset.val) and looks_like_path(p.dataset.name_or_path or "./none"),
             "is the name of a split, and the data is no hub set", "name a file such as val.jsonl or ./val"),
    Relation("dataset.clean.max_length", ("dataset.clean.min_length",),
             lambda p: 0 < (p.dataset.clean.max_length or 0) < (p.dataset.clean.min_length or 0),
             "is below min_length: no row would be left", "make it larger"),
    Relation("checkpoints.result", _VAL, lambda p: p.checkpoints.result == "best" and not _evaluated(p),
             "best needs evaluations, and there are no validation rows", "set dataset.val_size, or result: last"),
    Relation("checkpoints.metric", ("checkpoints.result", _PATIENCE), lambda p: p.checkpoints.metric != "loss" and (
                 p.checkpoints.result != "best" and p.training.early_stopping_patience is None),
             "is used for result: best and for early stopping only", "set checkpoints.result: best, or remove it"),
    Relation(_PATIENCE, _VAL, lambda p: p.training.early_stopping_patience is not None and not _evaluated(p),
             "needs evaluations, and there are no validation rows", "set dataset.val_size, or remove it"),
    Relation(_PATIENCE, (*_VAL, "training.eval_steps"),
             lambda p: p.training.early_stopping_patience is not None and _evaluated(p)
             and p.training.eval_steps is None,
             "needs evaluations during training", "set training.eval_steps"),
    Relation("training.warmup_steps", (), lambda p: p.training.warmup_steps > 1 and p.training.warmup_steps % 1 != 0,
             "is neither steps nor a share", "write whole steps, or a share below 1"),
    Relation("training.warmup_steps", ("training.lr_scheduler_type",),
             lambda p: p.training.warmup_steps > 0 and p.training.lr_scheduler_type == "constant",
             "is not used by lr_scheduler_type: constant", "set lr_scheduler_type: constant_with_warmup, or remove it"),
    Relation("training.warmup_steps", ("training.max_steps",),
             lambda p: p.training.max_steps is not None and p.training.warmup_steps > p.training.max_steps,
             "is more than max_steps: the learning rate would never be reached", "make it smaller"),
    Relation("model.quantization", ("lora", "task"),
             lambda p: p.model.quantization != "none" and p.lora is None and p.task == "finetune",
             "is quantised, and such weights cannot be trained whole", "add a lora section, or quantization: none"),
    Relation("model.compute_dtype", ("model.quantization",),
             lambda p: p.model.quantization != "nf4" and p.model.compute_dtype != "auto",
             "is for nf4", "set model.quantization: nf4, or remove it"),
    Relation("model.double_quant", ("model.quantization",),
             lambda p: p.model.quantization != "nf4" and not p.model.double_quant,
             "false is for nf4", "set model.quantization: nf4, or remove it"),
    Relation("model.revision", ("model.name_or_path",),
             lambda p: p.model.revision is not None and _local(p.model.name_or_path),
             "is for hub ids, and the model is on this machine", "remove it"),
    Relation("gpu_split.gpus", ("gpu_split.strategy",),
             lambda p: p.gpu_split.strategy == "single" and len(_cards(p) or ()) > 1,
             "names several cards, and strategy single uses one", "name one card, or choose a strategy"),
    Relation("gpu_split.gpus", ("gpu_split.strategy",),
             lambda p: p.gpu_split.strategy == "layers" and p.gpu_split.gpus == "none",
             "is the CPU, and strategy layers spreads a model over cards", "name cards, or strategy: single"),
    Relation("gpu_split.processes", ("gpu_split.strategy",),
             lambda p: p.gpu_split.strategy == "single" and (p.gpu_split.processes or 1) > 1,
             "is too many: strategy single runs in one process", "choose ddp, zero2, zero3 or fsdp, or remove it"),
    Relation("gpu_split.processes", ("gpu_split.gpus",),
             lambda p: _cards(p) is not None and (p.gpu_split.processes or 1) > len(_cards(p) or ()),
             "is more than the cards in gpu_split.gpus", "name a card for each process"),
    Relation("gpu_split.max_memory", ("gpu_split.strategy",),
             lambda p: bool(p.gpu_split.max_memory) and p.gpu_split.strategy != "layers",
             "it is for strategy layers", "set gpu_split.strategy: layers, or remove it"),
    Relation("gpu_split.max_memory", ("gpu_split.gpus",),
             lambda p: _cards(p) is not None and bool(p.gpu_split.max_memory)
             and _one_kind(_cards(p) or (), p.gpu_split.max_memory)
             and not set(p.gpu_split.max_memory) <= set(_cards(p) or ()),
             "it names a card that is not in gpu_split.gpus", "name the same cards in both"),
    Relation("limits.on_hang", ("limits.no_step_minutes",),
             lambda p: p.limits.on_hang != "wait" and p.limits.no_step_minutes is None,
             "needs limits.no_step_minutes: without it nothing is a hang", "set limits.no_step_minutes"),
    Relation("generation.min_new_tokens", ("generation.max_new_tokens",),
             lambda p: p.generation.min_new_tokens > p.generation.max_new_tokens,
             "is more than max_new_tokens", "make it smaller"),
    Relation("generation.system", ("dataset.template", "task"),
             lambda p: bool(p.generation.system) and p.task == "finetune" and p.dataset.template in TEMPLATES
             and p.dataset.template != "chat",
             "is used by template chat only", "set dataset.template: chat, or remove it"),
    _sampling("temperature", 1.0),
    _sampling("top_p", 1.0),
    _sampling("top_k", 0),
    Relation("sweep", ("task",), lambda p: p.task == "sweep" and p.sweep is None,
             "a sweep needs its grid", "add sweep: {input_tokens: [100], output_tokens: [64]}"),
    Relation("sweep.input_tokens", ("task",),
             lambda p: p.task == "sweep" and p.sweep is not None and not p.sweep.input_tokens,
             "is empty", "write lengths such as [100, 500]"),
    Relation("sweep.output_tokens", ("task",),
             lambda p: p.task == "sweep" and p.sweep is not None and not p.sweep.output_tokens,
             "is empty", "write lengths such as [64, 128]"),
)  # fmt: skip


def relations(preset: Preset, unsure: Collection[str] = ()) -> list[tuple[Problem, tuple[str, ...]]]:
    """Problems between keys, without a file or line yet, each with the other keys it is about.

    Args:
        unsure: keys that are wrong by themselves; nothing is concluded from them.
    """
    found: dict[str, tuple[Problem, tuple[str, ...]]] = {}
    for relation in _RELATIONS:
        if any(_touches(key, wrong) for key in (relation.key, *relation.beside) for wrong in unsure):
            continue
        if relation.key not in found and relation.broken(preset):
            value = value_at(preset, relation.key)
            text = "" if value is None else shown(value)
            said = relation.problem
            if text and text not in said and not isinstance(value, dict):
                said = f"{text} {said}"
            found[relation.key] = Problem("", None, relation.key, text, said, relation.cure), relation.beside
    return list(found.values())


def _touches(key: str, wrong: str) -> bool:
    return key == wrong or key.startswith(f"{wrong}.") or wrong.startswith(f"{key}.")
