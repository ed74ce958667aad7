"""pydantic's errors as problems: in words, with the value, the place and a cure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pydantic_core import ErrorDetails

from llmtui.core.errors import Problem
from llmtui.core.preset.leaves import section_model
from llmtui.core.preset.names import unknown_key

# What people write for a choice, where no near spelling helps.
_MEANT: Final = {
    "8bit": "int8", "8-bit": "int8", "4bit": "nf4", "4-bit": "nf4", "int4": "nf4", "fp4": "nf4", "None": "none",
    "False": "none", "zero": "zero2", "deepspeed": "zero2", "dp": "ddp", "auto": "layers", "balanced": "layers",
    "device_map": "layers", "fsdp2": "fsdp", "flash_attention": "flash_attention_2", "flash": "flash_attention_2",
    "full": "everything", "all": "everything", "output": "response", "completion": "response",
    "truncate": "cut", "skip": "drop", "train": "finetune", "sft": "finetune", "benchmark": "sweep",
    "eval_loss": "loss", "eval_accuracy": "accuracy", "True": "auto",
}  # fmt: skip
_EXPECTED: Final = {
    "int_type": "a whole number", "float_type": "a number", "string_type": "text", "bool_type": "true or false",
    "bool_parsing": "true or false", "list_type": "a list", "dict_type": "a map", "model_type": "a map of keys",
    "int_parsing": "a whole number", "float_parsing": "a number",
}  # fmt: skip
_SIGNS: Final = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
_STRING_FOR_SECTION: Final = {"model": "name_or_path", "dataset": "name_or_path", "lora": "r", "gpu_split": "gpus"}


def problems_of(details: Iterable[ErrorDetails], values: Mapping[str, Any]) -> list[Problem]:
    """One problem per key, without file and line; of a union's several errors the first that says most."""
    found: dict[str, Problem] = {}
    for detail in details:
        problem = _problem(detail, _key(detail, values))
        found.setdefault(problem.field, problem)
    return list(found.values())


def path_in(values: Mapping[str, Any], location: tuple[int | str, ...]) -> tuple[str, ...]:
    """The part of an error's location that the file has: union branches and list places are pydantic's own."""
    path: list[str] = []
    here: Any = values
    for part in location:
        if not isinstance(here, Mapping) or part not in here:
            break
        path.append(str(part))
        here = here[part]
    return tuple(path)


def _key(detail: ErrorDetails, values: Mapping[str, Any]) -> str:
    path = path_in(values, detail["loc"])
    if detail["type"] == "missing":
        path = (*path, str(detail["loc"][-1]))
    return ".".join(path)


def _problem(detail: ErrorDetails, key: str) -> Problem:
    value = "" if detail["type"] == "missing" else shown(detail["input"])
    if detail["type"] == "extra_forbidden":
        problem, cure = unknown_key(tuple(str(part) for part in detail["loc"]))
        return Problem("", None, key, value, problem, cure)
    message = detail["msg"].removeprefix("Value error, ")
    problem, bar, cure = message.partition(" | ")
    if not bar:
        problem, cure = _in_words(detail, key)
    if value and value not in problem and not isinstance(detail["input"], dict):
        problem = f"{value} {problem}"
    return Problem("", None, key, value, problem, cure)


def _in_words(detail: ErrorDetails, key: str) -> tuple[str, str]:
    context, kind, given = detail.get("ctx", {}), detail["type"], detail["input"]
    if kind == "literal_error":
        return _choice(str(context["expected"]), given)
    if kind == "missing":
        return "is missing", "add it"
    if kind == "string_too_short":
        return "nothing is written here", "write a hub id, a folder or a file" if key.endswith("path") else "write it"
    for name, sign in _SIGNS:
        if name in context:
            limit = number_text(context[name])
            cure = f"use a value {sign} {limit}"
            unset = name in ("ge", "gt") and isinstance(given, int | float) and given <= 0 and _may_be_null(key)
            return f"is out of range, it must be {sign} {limit}", cure + (", or null" if unset else "")
    expected = _EXPECTED.get(kind)
    if expected is None:
        return detail["msg"][:1].lower() + detail["msg"][1:], "see the key's help"
    if kind == "model_type":
        return "stands where keys should", _section_cure(key, given)
    if given is None:
        return f"is not {expected}", f"write {expected}, or remove the key for its default"
    return f"is not {expected}", f"write {expected}"


def _choice(expected: str, given: Any) -> tuple[str, str]:
    choices = re.findall(r"'([^']*)'", expected)
    listed = ", ".join(choices)
    meant = _MEANT.get(str(given))
    if meant not in choices:
        meant = next(iter(get_close_matches(str(given).lower(), choices, n=1, cutoff=0.5)), None)
    return "is not one of the choices", f"did you mean {meant}? ({listed})" if meant else f"use one of {listed}"


def _may_be_null(key: str) -> bool:
    section, _, name = key.rpartition(".")
    model = section_model(section)
    field = model.model_fields.get(name) if model else None
    return field is not None and field.default is None


def _section_cure(key: str, given: Any) -> str:
    if given is False and key == "lora":
        return "remove the section: without it all weights are trained"
    name = _STRING_FOR_SECTION.get(key)
    if given is True:
        return f"write {key}: {{}} for the defaults"
    if name is None or isinstance(given, list):
        return f"write {key}: {{key: value}}"
    return f"write {key}: {{{name}: {shown(given) if key in ('model', 'dataset') else '…'}}}"


def shown(value: Any) -> str:
    """A value as a message shows it: as YAML writes it, short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = value if isinstance(value, str) and value else repr(value)
    if isinstance(value, float):
        text = number_text(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def number_text(value: float) -> str:
    """A number as people write it: 4 rather than 4.0."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)
