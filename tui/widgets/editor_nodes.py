"""What stands in a preset's text, key by key, as it was written there (`3e-4` stays `3e-4`)."""

from __future__ import annotations

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from llmtui.core.text import safe_text
from llmtui.tui.widgets.editor_values import flow_text, text_of

_DEEPEST = 30  # a value nested deeper is shown cut; a recursive alias would never end


def written_values(text: str) -> dict[str, str] | None:
    """Dotted key → one line of YAML, for every key of every map in the text; None when it is not a map in YAML."""
    try:
        root = YAML(typ="safe", pure=True).compose(text)  # the rt one marks folds inside values
    except YAMLError:
        return None
    if not isinstance(root, MappingNode):
        return None
    found: dict[str, str] = {}
    _walk(root, "", found, 0)
    return found


def _walk(node: MappingNode, prefix: str, found: dict[str, str], depth: int) -> None:
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        found[name] = _text(value, 0, top=True)
        if isinstance(value, MappingNode) and depth < _DEEPEST:
            _walk(value, f"{name}.", found, depth + 1)


def _text(node: Node, depth: int, *, top: bool = False) -> str:
    if isinstance(node, ScalarNode):
        return _scalar(node, top)
    if depth > _DEEPEST:
        return "…"
    if isinstance(node, SequenceNode):
        return "[" + ", ".join(_text(item, depth + 1) for item in node.value) + "]"
    if isinstance(node, MappingNode):
        return "{" + ", ".join(f"{_text(k, depth + 1)}: {_text(v, depth + 1)}" for k, v in node.value) + "}"
    return "…"


def _scalar(node: ScalarNode, top: bool) -> str:
    value = str(node.value)
    if node.style is None:  # written bare: shown as it is
        if not value:
            return "null"
        return value if safe_text(value) == value and "\n" not in value else text_of(value)
    return text_of(value) if top else flow_text(value)
