"""Changing a preset's text: one key set or unset, comments and order kept."""

from __future__ import annotations

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarfloat import ScalarFloat
from ruamel.yaml.scalarstring import LiteralScalarString


class _ExactFloats(RoundTripRepresenter):
    """ruamel rewrites floats from mantissa and exponent, which costs the last digit of some: then the plain form."""

    def represent_scalar_float(self, data: ScalarFloat) -> Any:
        node = super().represent_scalar_float(data)
        return node if float(node.value) == float(data) else self.represent_float(float(data))


_ExactFloats.add_representer(ScalarFloat, _ExactFloats.represent_scalar_float)


def _yaml() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Representer = _ExactFloats
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.allow_unicode = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dump(yaml: YAML, tree: Any) -> str:
    stream = StringIO()
    yaml.dump(tree, stream)
    return stream.getvalue()


def set_value(text: str, key: str, value: Any) -> str:
    """Set a dotted key; missing sections are made. Comments, order and quotes of the rest stay."""
    yaml = _yaml()
    tree = yaml.load(text) or CommentedMap()
    target = tree
    *sections, name = key.split(".")
    for section in sections:
        inner = target.get(section)
        if not isinstance(inner, dict):
            inner = target[section] = CommentedMap()
        target = inner
    target[name] = _styled(value)
    return _dump(yaml, tree)


def unset_value(text: str, key: str) -> str:
    """Remove a dotted key; a section left empty goes too. A missing key is no error."""
    yaml = _yaml()
    tree = yaml.load(text) or CommentedMap()
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
    return _dump(yaml, tree)


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
