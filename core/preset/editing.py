"""Changing a preset's text: one key set or unset, every comment and the order kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from llmtui.core.errors import PresetError
from llmtui.core.preset.splicing import CannotSpliceError, Rendered, splice_set, splice_unset
from llmtui.core.preset.tree import read_tree

_BOM: Final = "\ufeff"
# Text that needs no quotes between brackets, as far as its characters go.
_PLAIN: Final = re.compile(r"[\w./][\w ./+@-]*")


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
        holder[path[-1]] = _styled(value, in_brackets=False)

    return _edited(text, lambda plain: splice_set(plain, path, value, _render), changed)


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
    yaml = _yaml()
    yaml.allow_duplicate_keys = True
    tree = yaml.load(plain)
    tree = CommentedMap() if tree is None else tree
    change(tree)
    return _dump(yaml, tree)


def _render(value: Any, in_brackets: bool) -> Rendered:
    """A value as text: in one line, or as a block of lines where it has several and stands in no brackets."""
    if value is None:
        return Rendered("null")
    if isinstance(value, float):
        # As it was typed where that is known; ruamel costs the last digit of some.
        typed = _dump(_yaml(), CommentedMap(k=value)).removeprefix("k:").strip()
        return Rendered(typed if _number(typed) == float(value) else repr(float(value)))
    if in_brackets:
        mapping = CommentedMap(k=_styled(value, in_brackets=True))
        mapping.fa.set_flow_style()
        return Rendered(_dump(_yaml(), mapping).strip()[len("{k: ") : -1])
    first, *below = _dump(_yaml(), CommentedMap(k=_styled(value, in_brackets=False))).rstrip("\n").split("\n")
    return Rendered(first.removeprefix("k:").strip(), tuple(row.removeprefix("  ") for row in below))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _yaml() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    yaml.allow_unicode = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dump(yaml: YAML, tree: Any) -> str:
    stream = StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue()


def _styled(value: Any, *, in_brackets: bool) -> Any:
    if isinstance(value, str):
        if in_brackets:
            return value if _PLAIN.fullmatch(value) else DoubleQuotedScalarString(value)
        if not value.replace("\n", "").isprintable():
            return DoubleQuotedScalarString(value)
        if "\n" in value:
            readable = value.strip() and value[0] not in " \n"
            return LiteralScalarString(value) if readable else DoubleQuotedScalarString(value)
        return value
    if isinstance(value, dict):
        mapping = CommentedMap((k, _styled(v, in_brackets=True)) for k, v in value.items())
        mapping.fa.set_flow_style()
        return mapping
    if isinstance(value, list | tuple):
        long = not in_brackets and any(isinstance(item, str) and "\n" in item for item in value)
        sequence = CommentedSeq(_styled(item, in_brackets=not long) for item in value)
        if not long:
            sequence.fa.set_flow_style()
        return sequence
    return value
