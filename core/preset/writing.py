"""Values as YAML text that reads back as the same values, whatever characters they hold."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarfloat import ScalarFloat
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from llmtui.core.preset.schema import Section
from llmtui.core.preset.splicing import Rendered

# Text that needs no quotes between brackets, as far as its characters go.
_PLAIN: Final = re.compile(r"[\w./][\w ./+@-]*")


class _Representer(RoundTripRepresenter):
    """ruamel writes null as nothing, which reads like a forgotten value, and costs some floats their last digit."""

    def represent_null(self, data: Any) -> ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:null", "null")

    def represent_exact_float(self, data: float) -> Any:
        if isinstance(data, ScalarFloat):
            node = self.represent_scalar_float(data)
            if float(node.value) == float(data):
                return node
        return self.represent_float(float(data))


_Representer.add_representer(type(None), _Representer.represent_null)
_Representer.add_representer(ScalarFloat, _Representer.represent_exact_float)


def round_trip_yaml() -> YAML:
    """A reader and writer that keeps comments and order, and never breaks a line."""
    yaml = YAML(typ="rt", pure=True)
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.allow_duplicate_keys = True
    yaml.width = 1 << 20
    yaml.allow_unicode = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def dumped(tree: Any) -> str:
    """The tree as text."""
    stream = StringIO()
    round_trip_yaml().dump(tree, stream)
    return stream.getvalue()


def render(value: Any, in_brackets: bool) -> Rendered:
    """A value as text: in one line, or as a block of lines where it has several and stands in no brackets."""
    if in_brackets:
        mapping = CommentedMap(k=styled(value, in_brackets=True))
        mapping.fa.set_flow_style()
        return Rendered(dumped(mapping).strip()[len("{k: ") : -1])
    first, *below = dumped(CommentedMap(k=styled(value))).rstrip("\n").split("\n")
    return Rendered(first.removeprefix("k:").strip(), tuple(row.removeprefix("  ") for row in below))


def written(section: Section) -> str:
    """A whole preset: sections as blocks, lists and maps of values in brackets."""
    return dumped(_block(section))


def _block(section: Section) -> CommentedMap:
    return CommentedMap(
        (name, _block(value) if isinstance(value, Section) else styled(value)) for name, value in section
    )


def styled(value: Any, *, in_brackets: bool = False) -> Any:
    """A value with the quotes and the style that keep its characters."""
    if isinstance(value, str):
        return _styled_text(value, in_brackets)
    if isinstance(value, Section):  # in a list, such as dataset.sources
        value = dict(value)
    if isinstance(value, dict):
        mapping = CommentedMap((_key(k), styled(v, in_brackets=True)) for k, v in value.items())
        mapping.fa.set_flow_style()
        return mapping
    if isinstance(value, list | tuple):
        long = not in_brackets and any(isinstance(item, str) and "\n" in item for item in value)
        sequence = CommentedSeq(styled(item, in_brackets=not long) for item in value)
        if not long:
            sequence.fa.set_flow_style()
        return sequence
    return value


def _styled_text(value: str, in_brackets: bool) -> Any:
    if in_brackets:
        return value if _PLAIN.fullmatch(value) else DoubleQuotedScalarString(value)
    if not value.replace("\n", "").isprintable():
        return DoubleQuotedScalarString(value)
    if "\n" in value:
        readable = value.strip() and value[0] not in " \n"
        return LiteralScalarString(value) if readable else DoubleQuotedScalarString(value)
    return value


def _key(key: Any) -> Any:
    return _styled_text(key, in_brackets=True) if isinstance(key, str) else key
