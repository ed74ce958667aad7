"""A row's messages to turns: role/content and from/value, roles that alternate; what is wrong is named by turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from llmtui.core.data.problems import Problems

_ROLES: Final = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "model": "assistant",
                 "system": "system", "chatgpt": "assistant", "bot": "assistant"}  # fmt: skip
_TOOLS: Final = frozenset({"tool", "tools", "function", "function_call", "function_response", "observation", "ipython"})
_SHAPE: Final = 'write [{"role": "user", "content": …}, {"role": "assistant", "content": …}]'


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: role is system, user or assistant."""

    role: str
    content: str


def turns_of(value: Any, system: str, place: str, problems: Problems) -> list[Turn] | None:
    """The turns of a conversation; None when something is wrong, which is noted.

    Args:
        value: a list of objects, or the JSON text of one, as a column of a CSV file holds it.
        system: what the row's system column says; counts when the messages have no system turn.
        place: the row.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            problems.add("messages is not JSON", place, _SHAPE)
            return None
    if not isinstance(value, list):
        problems.add("messages is not a list", place, _SHAPE)
        return None
    turns: list[Turn] = []
    for number, item in enumerate(value, 1):
        turn = _turn(item, f"{place}, turn {number}", problems)
        if turn is None:
            return None
        turns.append(turn)
    if not _alternate(turns, place, problems):
        return None
    if system and turns and turns[0].role != "system":
        turns.insert(0, Turn("system", system))
    return turns


def _turn(item: Any, where: str, problems: Problems) -> Turn | None:
    if not isinstance(item, dict):
        problems.add("a turn is no object", where, _SHAPE)
        return None
    said = item.get("role", item.get("from"))
    if not isinstance(said, str):
        problems.add("a turn has no role", f"{where} has {', '.join(map(str, item)) or 'nothing'}", _SHAPE)
        return None
    role = _ROLES.get(said.strip().lower())
    if role is None and (said.strip().lower() in _TOOLS or item.get("tool_calls")):
        problems.add(f"role {said!r}: tool calls cannot be trained on yet", where, "remove the rows that use tools")
        return None
    if role is None:
        problems.add(f"role {said!r} is unknown", where, "use system, user and assistant (or human and gpt)")
        return None
    content = _content(item.get("content", item.get("value")))
    if content is None:
        problems.add(f"a turn of the {role} has no text", where, "write its content as text, or remove the row")
        return None
    return Turn(role, content)


def _content(value: Any) -> str | None:
    """Text, a number as it is written, or the text parts of a list of parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and value:
        parts = [_part(part) for part in value]
        return "".join(part for part in parts if part is not None) if None not in parts else None
    return None


def _part(part: Any) -> str | None:
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    return None


def _alternate(turns: list[Turn], place: str, problems: Problems) -> bool:
    """Roles must alternate, user first, a system message only at the start."""
    expected = "user"
    for number, turn in enumerate(turns, 1):
        where = f"{place}, turn {number}"
        if turn.role == "system":
            if number != 1:
                problems.add("a system message stands after the first turn", where, "put it first")
                return False
            continue
        if turn.role != expected:
            problems.add(f"the {turn.role} speaks where the {expected} should", where,
                         "user and assistant must take turns, the user first")  # fmt: skip
            return False
        expected = "assistant" if expected == "user" else "user"
    return True
