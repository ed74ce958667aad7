"""What the schema has and this version cannot run yet: refused with a sentence, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from llmtui.core.errors import Problem
from llmtui.core.preset.leaves import value_at
from llmtui.core.preset.schema import Preset, Section
from llmtui.core.preset.wording import shown

_NOT_YET = "is valid but cannot be run by this version yet"
_CHECKS: Final[tuple[tuple[str, Callable[[Preset], bool], str], ...]] = (
    ("task", lambda p: p.task != "finetune", "task: finetune runs"),
    ("gpu_split.strategy", lambda p: p.gpu_split.strategy != "single", "strategy: single runs, on one GPU or the CPU"),
    ("gpu_split.processes", lambda p: (p.gpu_split.processes or 1) > 1, "one process runs"),
    ("gpu_split.nodes", lambda p: p.gpu_split.nodes > 1, "one machine runs"),
    ("gpu_split.deepspeed_config", lambda p: p.gpu_split.deepspeed_config is not None, "remove it"),
    ("gpu_split.keep", lambda p: p.gpu_split.keep != "effective", "keep: effective runs"),
    ("training.packing", lambda p: p.training.packing, "set packing: false"),
    ("training.recipe", lambda p: p.training.recipe != "trainer", "recipe: trainer runs"),
    ("checkpoints.mirror", lambda p: p.checkpoints.mirror is not None, "remove it"),
    ("checkpoints.on_full", lambda p: p.checkpoints.on_full != "continue", "on_full: continue runs"),
    ("generation.prompts", lambda p: bool(p.generation.prompts), "use training.sample_prompts"),
    ("generation.batch_size", lambda p: p.generation.batch_size != 8, "remove it: prompts are answered one by one"),
    ("sweep", lambda p: p.sweep is not None and p.task != "sweep", "remove the section"),
    ("notify", lambda p: p.notify is not None, "remove it"),
)  # fmt: skip


def unsupported(preset: Preset, file: str = "preset", lines: Mapping[str, int] | None = None) -> list[Problem]:
    """The keys whose values a later version will run, each with what runs today.

    Args:
        file: names the problems' place.
        lines: the line of every key, 0 for one that `--set` gave.
    """
    found = [_problem(preset, key, cure, file, lines or {}) for key, is_later, cure in _CHECKS if is_later(preset)]
    return sorted(found, key=lambda problem: problem.line or 0)


def _problem(preset: Preset, key: str, cure: str, file: str, lines: Mapping[str, int]) -> Problem:
    value = value_at(preset, key)
    text = "" if isinstance(value, Section) else shown(value)
    line = lines.get(key)
    return Problem("--set" if line == 0 else file, line or None, key, text, f"{text or 'this'} {_NOT_YET}", cure)
