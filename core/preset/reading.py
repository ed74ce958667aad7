"""Reading a preset: text and `--set` to a valid `Preset`, or to every problem at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset.adjusting import adjust
from llmtui.core.preset.assignments import apply_sets
from llmtui.core.preset.leaves import walk_leaves, walk_sections
from llmtui.core.preset.relations import relations
from llmtui.core.preset.schema import Preset
from llmtui.core.preset.secrets import token_problems, without_tokens
from llmtui.core.preset.tree import Tree, read_tree
from llmtui.core.preset.wording import path_in, problems_of

_BLANK_LORA = "lora is empty, so all weights are trained; write lora: {} for LoRA with its defaults"


@dataclass(frozen=True)
class LoadedPreset:
    """A valid preset with where it came from. `lines` has the line of every key in the file, 0 for `--set`."""

    preset: Preset
    name: str
    path: Path | None
    text: str
    warnings: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What relative paths in the preset are relative to."""
        return self.path.parent if self.path else Path.cwd()


def parse_preset(text: str, path: Path | None = None, sets: Sequence[str] = ()) -> LoadedPreset:
    """Read and check a preset's text.

    Args:
        text: YAML 1.2.
        path: its file, for messages and relative paths.
        sets: `key=value` assignments that win over the file; values are YAML.

    Raises:
        PresetError: with every problem found, in the order of the file.
    """
    file = path.name if path else "preset"
    problems: list[Problem] = []
    tree = Tree()
    try:
        tree = read_tree(text, file)
        problems += tree.problems
    except PresetError as error:
        raise PresetError([*map(without_tokens, error.problems), *token_problems(text, file, {}, sets)]) from None
    problems += token_problems(text, file, tree.lines, sets)
    done, wrong = apply_sets(tree.values, sets)
    problems += wrong
    lines = {key: line for key, line in tree.lines.items() if not _below(key, done)} | dict.fromkeys(done, 0)
    said = _leave_out_blanks(tree)
    _spell_out(tree.values, lines)
    preset, found = _validate(tree.values)
    problems += [_located(problem, beside, file, lines) for problem, beside in found]
    if problems or preset is None:
        raise PresetError(_sorted(problems, lines))
    preset, adjusted = adjust(preset, lines)
    name = path.name.removesuffix(path.suffix) if path else "preset"
    return LoadedPreset(preset, name, path, text, (*said, *adjusted), tuple(sets), lines)


_Found = tuple[Problem, tuple[str, ...]]


def _validate(values: dict[str, Any]) -> tuple[Preset | None, list[_Found]]:
    """The preset and its problems, each with other keys that may stand in the file for it.

    Keys that are wrong by themselves are left out when relations are judged.
    """
    try:
        preset = Preset.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        return preset, relations(preset)
    problems = problems_of(details, values)
    alone: list[_Found] = [(problem, ()) for problem in problems]
    for detail in details:
        _drop(values, path_in(values, detail["loc"]))
    values.setdefault("model", {}).setdefault("name_or_path", "unknown")
    try:
        rest = Preset.model_validate(values)
    except ValidationError:
        return None, alone
    return None, [*alone, *relations(rest, _unsure(problems))]


def _unsure(problems: Iterable[Problem]) -> set[str]:
    """The keys from which nothing can be concluded: the wrong ones, and those that an unknown key may have meant."""
    keys = {leaf.key for leaf in walk_leaves()} | {section.key for section in walk_sections()}
    unsure: set[str] = set()
    for problem in problems:
        unsure.add(problem.field)
        if problem.field not in keys:
            unsure.add(problem.field.rpartition(".")[0])
            unsure |= keys & {word.rstrip(".") for word in re.findall(r"[\w.]+", problem.cure)}
    return unsure - {""}


def _drop(values: dict[str, Any], path: tuple[str, ...]) -> None:
    here: Any = values
    for part in path[:-1]:
        here = here.get(part) if isinstance(here, dict) else None
    if path and isinstance(here, dict):
        here.pop(path[-1], None)


def _leave_out_blanks(tree: Tree) -> list[str]:
    """A section with nothing under it (all its keys commented out) has its defaults; a blank `lora:` is said."""
    said: list[str] = []
    for section in walk_sections():
        *above, name = section.key.split(".")
        holder: Any = tree.values
        for part in above:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or holder.get(name, 0) is not None or section.key not in tree.blank:
            continue
        if section.key == "lora":
            said.append(_BLANK_LORA)
        elif not section.optional and section.key != "model":
            del holder[name]
    return said


def _spell_out(values: dict[str, Any], lines: dict[str, int]) -> None:
    """PEFT's `lora_alpha` and `lora_dropout` may be written `alpha` and `dropout`."""
    lora = values.get("lora")
    if not isinstance(lora, dict):
        return
    for short, name in (("alpha", "lora_alpha"), ("dropout", "lora_dropout")):
        if short in lora and name not in lora:
            lora[name] = lora.pop(short)
            if f"lora.{short}" in lines:
                lines[f"lora.{name}"] = lines.pop(f"lora.{short}")


def _below(key: str, others: set[str]) -> bool:
    return any(key == other or key.startswith(f"{other}.") for other in others)


def _located(problem: Problem, beside: Iterable[str], file: str, lines: Mapping[str, int]) -> Problem:
    """The problem at the line of its key, of the section around it, or of another key that it is about."""
    key = next((k for name in (problem.field, *beside) for k in _upwards(name) if k in lines), None)
    line = lines[key] if key is not None else None
    return replace(problem, file="--set", line=None) if line == 0 else replace(problem, file=file, line=line)


def _upwards(key: str) -> Iterable[str]:
    while key:
        yield key
        key = key.rpartition(".")[0]


def _sorted(problems: Iterable[Problem], lines: Mapping[str, int]) -> list[Problem]:
    """In the order of the file, one for each key; what --set says comes last."""
    seen: dict[tuple[str, int | None, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.file, problem.line, problem.field), without_tokens(problem))
    order = {key: place for place, key in enumerate(lines)}
    return sorted(seen.values(), key=lambda p: (p.file == "--set", p.line is None, p.line or 0, order.get(p.field, 0)))
