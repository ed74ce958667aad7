"""YAML 1.2 text as plain values, with the line of every key and everything that is wrong with the text.

Composed by ruamel into nodes and walked here, so that duplicate keys are found together with the other mistakes, a
text key keeps the characters of the file (`0012` is no 12), and an alias cannot grow into a billion values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset.leaves import text_keys

_BOM: Final = "\ufeff"
_MOST_VALUES: Final = 20_000
_MOST_CHARACTERS: Final = 1 << 19
# Deeper than any preset, and a second's work or more for a parser in Python.
_TOO_DEEP: Final = re.compile(r"(?:[\[{]\s*){64}|(?:- ){64}")
_TAG: Final = "tag:yaml.org,2002:"


@dataclass
class Tree:
    """What a text holds. `lines` has the line of every dotted key; `blank` the keys with nothing written after them."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    blank: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def read_tree(text: str, file: str) -> Tree:
    """The text's keys and values; what is wrong with single keys is in `problems`.

    Raises:
        PresetError: the text is no map in YAML.
    """
    text = text.lstrip(_BOM)
    if len(text) > _MOST_CHARACTERS:
        raise _refusal(file, None, "", "this is too long for a preset", "keep data in a file that the preset names")
    if _TOO_DEEP.search(text):
        raise _refusal(file, None, "", "it is nested too deeply", "check its brackets")
    root = _compose(text, file)
    if not isinstance(root, MappingNode):
        kind = "empty" if root is None else "no map of keys and values"
        raise _refusal(file, 1, "", f"the preset is {kind}", "start with model: {name_or_path: …}")
    walk = _Walk(file)
    values = walk.value(root, "")
    if walk.count > _MOST_VALUES:
        raise _refusal(file, None, "", "the aliases in it make too many values", "write the values out")
    walk.tree.values = values
    return walk.tree


def read_value(raw: str, key: str) -> Any:
    """The value of `--set key=raw`: YAML, or for keys that hold text the text itself.

    Raises:
        PresetError: it is neither.
    """
    if key in text_keys() and not raw.lstrip().startswith(('"', "'", "[", "{", "|", ">")):
        return None if raw.strip() in ("", "null", "~") else raw
    try:
        node = _compose(raw, "--set")
    except PresetError:
        return raw
    if node is None:
        return None
    if isinstance(node, MappingNode) and not raw.lstrip().startswith("{"):
        return raw  # text with a colon in it
    return _Walk("--set").value(node, f"{key}.")


def _refusal(file: str, line: int | None, value: str, problem: str, cure: str) -> PresetError:
    return PresetError([Problem(file, line, "", value, problem, cure)])


def _compose(text: str, file: str) -> Node | None:
    try:
        node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _not_yaml(error, text, file) from None
    except (YAMLError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        said = "it is nested too deeply" if deep else f"not YAML: {str(error).splitlines()[0]}"
        raise _refusal(file, _line_of_control(text), "", said, "check the file") from None
    return node


def _not_yaml(error: MarkedYAMLError, text: str, file: str) -> PresetError:
    ended = "end" in str(error.problem) and "stream" in str(error.problem)  # of a bracket or quote that stays open
    mark = (error.context_mark if ended else None) or error.problem_mark or error.context_mark
    rows = text.splitlines()
    line = min(mark.line + 1, max(1, len(rows))) if mark else None
    row = rows[line - 1] if line and line <= len(rows) else ""
    said = error.problem or error.context or "it cannot be read"
    if "\t" in row[: len(row) - len(row.lstrip())]:
        return _refusal(file, line, row.strip(), "a tab indents this line", "indent with spaces")
    if "'\\t'" in said:
        return _refusal(file, line, row.strip(), "a tab stands where a space should", "write a space")
    if ended:
        return _refusal(file, line, row.strip(), "a bracket or quote opens here and is never closed", "close it")
    opened = error.context_mark.line + 1 if error.context_mark else 0
    return _refusal(file, line, row.strip(), f"not YAML: {said}", _cure(said, row, opened))


def _cure(said: str, row: str, opened: int) -> str:
    if "mapping values are not allowed" in said:
        return "quote a value that has a colon in it, and check the line's indentation"
    if "another document" in said:
        return "keep one preset in a file: remove what begins here"
    if "cannot start any token" in said:
        return "quote a value that begins with % @ or `"
    if "',' or '" in said:
        return f"check the bracket that opens in line {opened}"
    if "expected <block end>" in said or "expected the node content" in said:
        return "check the brackets and the indentation above"
    return f"check {row.strip()[:40]!r}" if row.strip() else "check the lines above"


def _line_of_control(text: str) -> int | None:
    """The line of the first character that YAML does not allow."""
    found = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]", text)
    return text.count("\n", 0, found.start()) + 1 if found else None


@cache
def _scalars() -> Any:
    return YAML(typ="safe", pure=True).constructor


class _Walk:
    """One walk over the nodes of a text."""

    def __init__(self, file: str) -> None:
        self.tree = Tree()
        self.count = 0
        self._file = file
        self._above: list[Node] = []

    def value(self, node: Node, prefix: str) -> Any:
        self.count += 1
        if self.count > _MOST_VALUES or any(node is above for above in self._above):
            return None
        if isinstance(node, ScalarNode):
            return _scalar(node, prefix[:-1])
        self._above.append(node)
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item, prefix) for item in node.value]
            return self._map(node, prefix)
        finally:
            self._above.pop()

    def _map(self, node: Node, prefix: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self._problem(line, prefix[:-1], "a list or map stands where a key should", "write key: value")
                continue
            key = str(key_node.value)
            dotted = f"{prefix}{key}"
            if key == "<<":
                found = {**self._merged(value_node, prefix), **found}
                continue
            if key in first:
                self._problem(line, dotted, f"the key stands twice, first in line {first[key]}", "remove one")
                continue
            first[key] = line
            self.tree.lines[dotted] = line
            if isinstance(value_node, ScalarNode) and value_node.value == "" and value_node.style is None:
                self.tree.blank.add(dotted)
            found[key] = self.value(value_node, f"{dotted}.")
        return found

    def _merged(self, node: Node, prefix: str) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for part in node.value if isinstance(node, SequenceNode) else [node]:
            if isinstance(part, MappingNode):
                merged = {**self._map(part, prefix), **merged}
        return merged

    def _problem(self, line: int, key: str, problem: str, cure: str) -> None:
        self.tree.problems.append(Problem(self._file, line, key, "", problem, cure))


def _scalar(node: ScalarNode, key: str) -> Any:
    """A number, true, false, null or text; where the schema wants text, the characters of the file."""
    kind = str(node.tag).removeprefix(_TAG)
    if kind == "null":
        return None
    wants_text = key in text_keys() or key.rpartition(".")[0] in text_keys()
    if wants_text or kind not in ("int", "float", "bool"):
        return str(node.value)
    try:
        return _scalars().construct_object(node)
    except (ValueError, YAMLError):
        return str(node.value)
