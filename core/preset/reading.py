"""Reading a preset: YAML 1.2 with line numbers, `--set`, and every problem at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset.names import unknown_key
from llmtui.core.preset.relations import adjust, relations
from llmtui.core.preset.schema import Preset

_TOKEN: Final = re.compile(r"\bhf_[A-Za-z0-9]{16,}")
_BOM: Final = "\ufeff"


@dataclass(frozen=True)
class LoadedPreset:
    """A valid preset with where it came from."""

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
        PresetError: with every problem found.
    """
    file = path.name if path else "preset"
    tree = _tree(text.lstrip(_BOM), file)
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    data = _plain(tree, "", lines)
    problems += _secrets(data, "", file, lines)
    for assignment in sets:
        problems += _apply_set(data, assignment, lines)
    _aliases(data)
    try:
        preset = Preset.model_validate(data)
    except ValidationError as error:
        problems += [_problem(detail, file, lines, data) for detail in error.errors()]
        raise PresetError(sorted(_unique(problems), key=lambda p: (p.line or 0, p.field))) from None
    problems += [_located(p, file, lines) for p in relations(preset)]
    if problems:
        raise PresetError(sorted(_unique(problems), key=lambda p: (p.line or 0, p.field)))
    preset, said = adjust(preset, set(lines))
    return LoadedPreset(preset, path.stem if path else "preset", path, text, tuple(said), tuple(sets), lines)


def _tree(text: str, file: str) -> CommentedMap:
    try:
        tree = YAML(typ="rt", pure=True).load(text)
    except DuplicateKeyError as error:
        key = re.search(r'duplicate key "([^"]*)"', str(error.problem))
        mark, first = error.problem_mark, _first_line(text, key[1] if key else "", error)
        name = key[1] if key else ""
        raise PresetError(
            [
                Problem(
                    file,
                    (mark.line + 1) if mark else None,
                    name,
                    "",
                    f"the key stands twice, first in line {first}",
                    "remove one",
                )
            ]
        ) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        row = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
        tab = "\t" in row[: len(row) - len(row.lstrip())]
        problem = "a tab indents this line" if tab else f"not YAML: {error.problem or error.context}"
        raise PresetError(
            [Problem(file, line, "", row.strip(), problem, "indent with spaces" if tab else "check the line")]
        ) from None
    except YAMLError as error:
        raise PresetError([Problem(file, None, "", "", f"not YAML: {error}", "check the file")]) from None
    if not isinstance(tree, CommentedMap):
        kind = "empty" if tree is None else "no map of keys and values"
        raise PresetError([Problem(file, 1, "", "", f"the preset is {kind}", "start with model: {name_or_path: …}")])
    return tree


def _first_line(text: str, key: str, error: DuplicateKeyError) -> int:
    limit = error.problem_mark.line if error.problem_mark else 0
    rows = text.splitlines()
    indent = len(rows[limit]) - len(rows[limit].lstrip()) if limit < len(rows) else 0
    for number in range(limit - 1, -1, -1):
        row = rows[number]
        if row.lstrip().startswith((f"{key}:", f'"{key}"', f"'{key}'")) and len(row) - len(row.lstrip()) == indent:
            return number + 1
    return 0


def _plain(value: Any, prefix: str, lines: dict[str, int]) -> Any:
    """The tree as plain values; `lines` gets the line of every key."""
    if isinstance(value, dict):
        result = {}
        for key, item in value.items():
            dotted = f"{prefix}{key}"
            if isinstance(value, CommentedMap):
                lines[dotted] = value.lc.key(key)[0] + 1
            result[key] = _plain(item, f"{dotted}.", lines)
        return result
    if isinstance(value, list):
        return [_plain(item, prefix, lines) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def _secrets(value: Any, prefix: str, file: str, lines: dict[str, int]) -> list[Problem]:
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in _secrets(v, f"{prefix}{k}.", file, lines)]
    if isinstance(value, list):
        return [p for v in value for p in _secrets(v, prefix, file, lines)]
    if isinstance(value, str) and _TOKEN.search(value):
        key = prefix.rstrip(".")
        cure = "remove it and log in with `hf auth login`, or set HF_TOKEN in the environment"
        return [Problem(file, lines.get(key), key, "hf_…", "holds an access token", cure)]
    return []


def _apply_set(data: dict[str, Any], assignment: str, lines: dict[str, int]) -> list[Problem]:
    key, equals, raw = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        return [Problem("--set", None, key, assignment, "is not key=value", "write --set training.learning_rate=1e-4")]
    try:
        value = _plain(YAML(typ="safe", pure=True).load(raw) if raw.strip() else None, "", {})
    except YAMLError:
        value = raw
    if isinstance(value, dict) and not raw.lstrip().startswith("{"):
        value = raw  # text with a colon in it, such as run:demo
    target: dict[str, Any] = data
    for part in parts[:-1]:
        inner = target.get(part)
        if not isinstance(inner, dict):
            inner = target[part] = {}
        target = inner
    target[parts[-1]] = value
    for known in [k for k in lines if k == key or k.startswith(f"{key}.")]:
        lines.pop(known)
    lines[key.strip()] = 0
    return []


def _aliases(data: dict[str, Any]) -> None:
    lora = data.get("lora")
    if isinstance(lora, dict):
        for short, name in (("alpha", "lora_alpha"), ("dropout", "lora_dropout")):
            if short in lora and name not in lora:
                lora[name] = lora.pop(short)


def _problem(detail: ErrorDetails, file: str, lines: dict[str, int], data: dict[str, Any]) -> Problem:
    where = [str(part) for part in detail["loc"]]
    key = ".".join(where)
    if detail["type"] == "extra_forbidden":
        problem, cure = unknown_key(key)
        return _located(Problem("", None, key, _shown(detail["input"]), problem, cure), file, lines)
    known = [part for i, part in enumerate(where) if ".".join(where[: i + 1]) in lines or i < 2]
    key = ".".join(known)
    message = detail["msg"].removeprefix("Value error, ")
    problem, _, cure = message.partition(" | ")
    if not cure:
        problem, cure = _plain_words(detail)
    value = _shown(detail["input"]) if detail["type"] != "missing" else ""
    if value and detail["type"] != "missing":
        problem = f"{value} {problem}" if value not in problem else problem
    return _located(Problem("", None, key, value, problem, cure), file, lines)


def _plain_words(detail: ErrorDetails) -> tuple[str, str]:
    context = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "literal_error":
        return "is not one of the choices", f"use {context['expected']}"
    if kind == "missing":
        return "is missing", "add it"
    for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
        if name in context:
            return f"is out of range, it must be {sign} {context[name]:g}", f"use a value {sign} {context[name]:g}"
    expected = {
        "int_type": "a whole number", "float_type": "a number", "string_type": "text", "bool_type": "true or false",
        "bool_parsing": "true or false", "list_type": "a list", "dict_type": "a map", "model_type": "a map of keys",
        "string_too_short": "something",
    }.get(kind)  # fmt: skip
    return (f"is not {expected}", f"write {expected}") if expected else (detail["msg"].lower(), "see the key's help")


def _located(problem: Problem, file: str, lines: dict[str, int]) -> Problem:
    key = problem.field
    while key and key not in lines:
        key = key.rpartition(".")[0]
    line = lines.get(key) if key else None
    if line == 0:
        return Problem("--set", None, problem.field, problem.value, problem.problem, problem.cure)
    return Problem(file, line, problem.field, problem.value, problem.problem, problem.cure)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _unique(problems: list[Problem]) -> list[Problem]:
    seen: dict[tuple[str, int | None, str], Problem] = {}
    for problem in problems:
        seen.setdefault((problem.file, problem.line, problem.field), problem)
    return list(seen.values())
