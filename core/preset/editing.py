"""Changing a preset's text: one key set or unset, comments and order kept."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarfloat import ScalarFloat
from ruamel.yaml.scalarstring import LiteralScalarString

_BOM: Final = "\ufeff"
_FIRST_KEY: Final = re.compile(r"^[^\s#-][^#\n]*:[ \t]*(?:#.*)?\r?\n(?:[ ]*(?:#.*)?\r?\n)*([ ]+)[^\s#-]", re.MULTILINE)
_FIRST_DASH: Final = re.compile(
    r"^([ ]*)[^\s#-][^#\n]*:[ \t]*(?:#.*)?\r?\n(?:[ ]*(?:#.*)?\r?\n)*([ ]*)- ", re.MULTILINE
)


class _ExactFloats(RoundTripRepresenter):
    """ruamel rewrites floats from mantissa and exponent, which costs the last digit of some: then the plain form."""

    def represent_scalar_float(self, data: ScalarFloat) -> Any:
        node = super().represent_scalar_float(data)
        return node if float(node.value) == float(data) else self.represent_float(float(data))


_ExactFloats.add_representer(ScalarFloat, _ExactFloats.represent_scalar_float)


def _yaml(text: str) -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Representer = _ExactFloats
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.allow_unicode = True
    mapping, offset = _indentation(text)
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    yaml.explicit_start = bool(re.search(r"^---\s", text, re.MULTILINE))
    return yaml


def _indentation(text: str) -> tuple[int, int]:
    """How far keys stand in from their section, and dashes from their key, in the first places that show it."""
    keys = _FIRST_KEY.search(text)
    dash = _FIRST_DASH.search(text)
    return len(keys[1]) if keys else 2, len(dash[2]) - len(dash[1]) if dash and len(dash[2]) >= len(dash[1]) else 2


def _dump(yaml: YAML, tree: Any, text: str) -> str:
    """The tree as text, with the byte order mark and the line ends that the old text has."""
    stream = StringIO()
    yaml.dump(tree, stream)
    new = stream.getvalue()
    if "\r\n" in text:
        new = new.replace("\n", "\r\n")
    return f"{_BOM}{new}" if text.startswith(_BOM) else new


def set_value(text: str, key: str, value: Any) -> str:
    """Set a dotted key; missing sections are made. Comments, order, quotes, indentation and line ends of the rest stay.

    Raises:
        YAMLError: the text is no YAML.
    """
    yaml, tree = _load(text)
    target = tree
    *sections, name = key.split(".")
    for section in sections:
        inner = target.get(section)
        if not isinstance(inner, dict):
            inner = target[section] = CommentedMap()
        target = inner
    target[name] = _styled(value)
    return _dump(yaml, tree, text)


def unset_value(text: str, key: str) -> str:
    """Remove a dotted key; a section left empty goes too. A missing key is no error."""
    yaml, tree = _load(text)
    path: list[tuple[Any, str]] = []
    target: Any = tree
    for part in key.split("."):
        if not isinstance(target, dict) or part not in target:
            return text
        path.append((target, part))
        target = target[part]
    for holder, part in reversed(path):
        if (part == path[-1][1] and holder is path[-1][0]) or (isinstance(holder[part], dict) and not holder[part]):
            del holder[part]
    return _dump(yaml, tree, text)


def _load(text: str) -> tuple[YAML, Any]:
    yaml = _yaml(text)
    plain = text.lstrip(_BOM).replace("\r\n", "\n")
    tree = yaml.load(plain)
    if tree is None:
        tree = CommentedMap()
        if plain.strip():  # nothing but comments
            rows = [row.removeprefix("#").removeprefix(" ") for row in plain.splitlines()]
            tree.yaml_set_start_comment("\n".join(rows))
    return yaml, tree


def _styled(value: Any) -> Any:
    if isinstance(value, str) and "\n" in value and not any(ord(c) < 32 and c != "\n" for c in value):
        return LiteralScalarString(value)
    if isinstance(value, dict):
        mapping = CommentedMap((k, _styled(v)) for k, v in value.items())
        if all(not isinstance(v, dict | list) for v in value.values()):
            mapping.fa.set_flow_style()
        return mapping
    if isinstance(value, list | tuple):
        sequence = CommentedSeq(_styled(v) for v in value)
        if all(not isinstance(v, dict | list) and "\n" not in str(v) for v in value):
            sequence.fa.set_flow_style()
        return sequence
    return value
