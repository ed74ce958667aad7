"""`--set key=value`: assignments that win over the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llmtui.core.errors import Problem
from llmtui.core.preset.leaves import Leaf, walk_leaves
from llmtui.core.preset.tree import read_value

_FILE: Final = "--set"
_EXAMPLE: Final = "write --set training.learning_rate=1e-4"


def apply_sets(values: dict[str, Any], assignments: Sequence[str]) -> tuple[set[str], list[Problem]]:
    """Put the assignments into the values.

    Returns:
        The dotted keys that were set, and what is wrong with the assignments.
    """
    leaves = {leaf.key: leaf for leaf in walk_leaves()}
    done: set[str] = set()
    problems: list[Problem] = []
    for assignment in assignments:
        key, equals, raw = assignment.partition("=")
        key = key.strip()
        if not equals or not all(key.split(".")):
            problems.append(Problem(_FILE, None, key if equals else "", assignment, "it is not key=value", _EXAMPLE))
            continue
        value = read_value(raw, key)
        if key in leaves and _is_grid(leaves[key], raw, value):
            problems.append(Problem(_FILE, None, key, raw, f"{raw} is a list, and grids come with a later version",
                                    "give one value, and start a run for each"))  # fmt: skip
            continue
        _put(values, key.split("."), value)
        done.add(key)
    return done, problems


def _is_grid(leaf: Leaf, raw: str, value: Any) -> bool:
    """Whether several values stand where the key takes one; `gpus` and lists take several."""
    if leaf.kind in ("list", "map"):
        return False
    return isinstance(value, list) or (leaf.kind in ("int", "float", "bool", "choice") and "," in raw)


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    holder = values
    for part in path[:-1]:
        inner = holder.get(part)
        if not isinstance(inner, dict):
            inner = holder[part] = {}
        holder = inner
    holder[path[-1]] = value
