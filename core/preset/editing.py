"""Changing a preset's text: one key set or unset, every comment and the order kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from llmtui.core.errors import PresetError
from llmtui.core.preset.splicing import CannotSpliceError, splice_set, splice_unset
from llmtui.core.preset.tree import read_tree
from llmtui.core.preset.writing import dumped, render, round_trip_yaml, styled

_BOM: Final = "\ufeff"


def set_value(text: str, key: str, value: Any) -> str:
    """Set a dotted key; missing sections are made. Not a character of the rest changes.

    Raises:
        YAMLError: the text is no YAML.
    """
    path = key.split(".")

    def changed(tree: dict[str, Any]) -> None:
        holder = tree
        for part in path[:-1]:
            inner = holder.get(part)
            if not isinstance(inner, dict):
                inner = holder[part] = CommentedMap()
            holder = inner
        holder[path[-1]] = styled(value)

    return _edited(text, lambda plain: splice_set(plain, path, value, render), changed)


def unset_value(text: str, key: str) -> str:
    """Remove a dotted key; a section left empty goes too. A missing key is no error.

    Raises:
        YAMLError: the text is no YAML.
    """
    path = key.split(".")

    def changed(tree: dict[str, Any]) -> None:
        holders: list[Any] = [tree]
        for part in path[:-1]:
            holders.append(holders[-1].get(part) if isinstance(holders[-1], dict) else None)
        if not isinstance(holders[-1], dict) or path[-1] not in holders[-1]:
            return
        del holders[-1][path[-1]]
        for depth in range(len(path) - 2, -1, -1):
            if not holders[depth + 1]:
                del holders[depth][path[depth]]

    return _edited(text, lambda plain: splice_unset(plain, path), changed)


def _edited(text: str, splice: Callable[[str], str], change: Callable[[dict[str, Any]], None]) -> str:
    """The spliced text when it reads as the changed tree, else the changed tree as ruamel writes it."""
    plain = text.removeprefix(_BOM).replace("\r\n", "\n")
    wanted = _values(plain)
    change(wanted)
    try:
        new = splice(plain)
        fits = _comparable(_values(new)) == _comparable(wanted)
    except (CannotSpliceError, YAMLError, PresetError, ValueError):
        fits = False
    if not fits:
        new = _rewritten(plain, change)
    if "\r\n" in text:
        new = new.replace("\n", "\r\n")
    return f"{_BOM}{new}" if text.startswith(_BOM) else new


def _values(plain: str) -> dict[str, Any]:
    try:
        return read_tree(plain, "preset").values
    except PresetError:
        if YAML(typ="safe", pure=True).load(plain) is None:  # raises YAMLError where it is no YAML
            return {}
        raise


def _comparable(value: Any) -> Any:
    """Values as they compare: `4` and 4 are written the same way, so are the keys 0 and "0"."""
    if isinstance(value, dict):
        return {str(key): _comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(item) for item in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _rewritten(plain: str, change: Callable[[dict[str, Any]], None]) -> str:
    tree = round_trip_yaml().load(plain)
    tree = CommentedMap() if tree is None else tree
    change(tree)
    return dumped(tree)
