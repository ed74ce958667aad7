"""Changing one key in YAML text by cutting and pasting, so that not a character of the rest moves.

ruamel's own round trip attaches a comment to the key before it: a new key lands behind the next section's heading, and
a removed key takes that heading along. Here the nodes only say where things stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

_FIRST_KEY: Final = re.compile(r"^[^\s#-][^#\n]*:[ ]*(?:#.*)?\n(?:[ ]*(?:#.*)?\n)*([ ]+)[^\s#-]", re.MULTILINE)
_COMMENT: Final = re.compile(r"[ \t]+#[^\n]*")


class CannotSpliceError(Exception):
    """The text is built in a way (aliases, several documents) that needs a whole rewriting."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value and where both stand in the text.

    `start` is the key's, `colon` behind its colon, `begin` and `end` around the value; all three last are the same
    where nothing is written.
    """

    key: ScalarNode
    value: Node
    start: int
    colon: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """A value as text: what stands behind the key, and lines of a block below it (without indentation)."""

    inline: str
    below: tuple[str, ...] = ()


Render = Callable[[Any, bool], Rendered]


def splice_set(text: str, path: list[str], value: Any, render: Render) -> str:
    """The text with the key at `path` set.

    Args:
        text: YAML with `\\n` line ends.
        render: writes a value; its second argument says whether it stands in brackets.
    """
    root = _root(text)
    if root is None:
        return _append(text, _block(path, value, render, 0, 2))
    holder, depth = _deepest(text, root, path)
    left = path[depth:]
    if not left:
        raise CannotSpliceError
    entry = _entry(text, holder, left[0])
    if entry is None:
        return _insert(text, root, holder, left, value, render)
    if len(left) == 1:
        return _replace(text, holder, entry, value, render)
    return _open(text, holder, entry, left[1:], value, render)


def splice_unset(text: str, path: list[str]) -> str:
    """The text without the key at `path`, and without sections that are empty then; the text itself if it has none."""
    root = _root(text)
    if root is None:
        return text
    holders: list[tuple[MappingNode, Entry]] = []
    holder: Node = root
    for part in path:
        entry = _entry(text, holder, part) if isinstance(holder, MappingNode) else None
        if entry is None or not isinstance(holder, MappingNode):
            return text
        holders.append((holder, entry))
        holder = entry.value
    while len(holders) > 1 and len(holders[-1][0].value) == 1:
        holders.pop()
    return _cut(text, *holders[-1])


def _root(text: str) -> MappingNode | None:
    node = YAML(typ="safe", pure=True).compose(text)
    if node is not None and not isinstance(node, MappingNode):
        raise CannotSpliceError
    return node


def _entry(text: str, holder: MappingNode, name: str) -> Entry | None:
    for key, value in holder.value:
        if isinstance(key, ScalarNode) and key.value == name:
            if value.start_mark.index < key.end_mark.index:
                raise CannotSpliceError  # an alias: the node stands elsewhere
            colon = text.index(":", key.end_mark.index) + 1
            if _is_blank(value):
                return Entry(key, value, key.start_mark.index, colon, colon, colon)
            begin = colon if _is_block(value) else value.start_mark.index
            return Entry(key, value, key.start_mark.index, colon, begin, _end(text, value))
    return None


def _is_blank(value: Node) -> bool:
    return isinstance(value, ScalarNode) and value.start_mark.index == value.end_mark.index


def _is_block(value: Node) -> bool:
    return isinstance(value, CollectionNode) and not value.flow_style


def _end(text: str, node: Node) -> int:
    """Where the last character of a value stands, without the blank lines and comments that follow a block."""
    if _is_block(node) and node.value:
        last = node.value[-1]
        if not isinstance(last, tuple):
            return _end(text, last)
        key, value = last
        if value.start_mark.index < key.end_mark.index:
            raise CannotSpliceError
        return text.index(":", key.end_mark.index) + 1 if _is_blank(value) else _end(text, value)
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        return _end_of_block_scalar(text, node)
    return int(node.end_mark.index)


def _end_of_block_scalar(text: str, node: ScalarNode) -> int:
    rows = text[node.start_mark.index : node.end_mark.index].split("\n")
    inside = next((_indent(row) for row in rows[1:] if row.strip()), 0)
    while len(rows) > 1 and (not rows[-1].strip() or _indent(rows[-1]) < inside):
        rows.pop()
    return int(node.start_mark.index) + len("\n".join(rows))


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _deepest(text: str, root: MappingNode, path: list[str]) -> tuple[MappingNode, int]:
    """The innermost map on the way to a key, and how many parts of the path lead there."""
    holder, depth = root, 0
    for part in path[:-1]:
        entry = _entry(text, holder, part)
        if entry is None or not isinstance(entry.value, MappingNode) or not entry.value.value:
            break
        holder, depth = entry.value, depth + 1
    return holder, depth


def _replace(text: str, holder: MappingNode, entry: Entry, value: Any, render: Render) -> str:
    made = render(value, bool(holder.flow_style))
    block = _is_block(entry.value)
    said = _comment(text, entry.colon if block else entry.end)
    head, tail = text[: entry.begin], text[entry.end + (0 if block else len(said)) :]
    first = f"{head}{'' if head.endswith(' ') else ' '}{made.inline}".rstrip(" ") + said
    if not made.below:
        return f"{first}{tail}"
    indent = " " * (entry.key.start_mark.column + _step(text))
    return f"{first}\n{_lines(made.below, indent)}{tail}"


def _comment(text: str, at: int) -> str:
    """The comment that follows on the same line, with the space before it."""
    found = _COMMENT.match(text, at)
    return found.group() if found else ""


def _open(text: str, holder: MappingNode, entry: Entry, rest: list[str], value: Any, render: Render) -> str:
    """A section that holds nothing yet (`lora:`, `lora: null`, `lora: {}`) gets its first key."""
    if holder.flow_style or (isinstance(entry.value, CollectionNode) and entry.value.flow_style):
        return f"{text[: entry.colon]} {{{_flow(rest, value, render)}}}{text[entry.end :]}"
    tail = text[entry.end :]
    said = _comment(tail, 0)
    step = _step(text)
    block = _block(rest, value, render, entry.key.start_mark.column + step, step)
    return f"{text[: entry.colon]}{said}\n{block}{tail[len(said) :]}"


def _insert(
    text: str, root: MappingNode, holder: MappingNode, left: list[str], value: Any, render: Render
) -> str:  # fmt: skip
    last = holder.value[-1][0].value if holder.value else None
    entry = _entry(text, holder, last) if last is not None else None
    if holder.flow_style:
        at = entry.end if entry else int(holder.start_mark.index) + 1
        return f"{text[:at]}{', ' if entry else ''}{_flow(left, value, render)}{text[at:]}"
    if entry is None:
        raise CannotSpliceError
    column = int(entry.key.start_mark.column)
    block = _block(left, value, render, column, _step(text))
    if holder is root and not re.search(r"^(\.\.\.|---)", text[entry.end :], re.MULTILINE):
        return _append(text, block)
    end = text.find("\n", entry.end)
    return f"{text}\n{block}" if end < 0 else f"{text[:end]}\n{block}{text[end:]}"


def _append(text: str, block: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{block}\n"


def _cut(text: str, holder: MappingNode, entry: Entry) -> str:
    if holder.flow_style:
        after = re.compile(r"\s*,[ \t]*").match(text, entry.end)
        if after:
            return text[: entry.start] + text[after.end() :]
        before = re.search(r"\s*,\s*$", text[: entry.start])
        return text[: before.start() if before else entry.start] + text[entry.end :]
    begin = text.rfind("\n", 0, entry.start) + 1
    if text[begin : entry.start].strip():
        raise CannotSpliceError  # `- key: value`, `--- key: value`
    end = text.find("\n", entry.end)
    return text[:begin] + ("" if end < 0 else text[end + 1 :])


def _block(path: list[str], value: Any, render: Render, column: int, step: int) -> str:
    """`a:\\n  b: value`, indented, without a last line end."""
    rows = [f"{' ' * (column + step * depth)}{_name(part, render)}:" for depth, part in enumerate(path)]
    made = render(value, False)
    rows[-1] = f"{rows[-1]} {made.inline}"
    if made.below:
        rows.append(_lines(made.below, " " * (column + step * len(path))))
    return "\n".join(rows)


def _lines(below: tuple[str, ...], indent: str) -> str:
    return "\n".join(f"{indent}{row}" if row else "" for row in below)


def _flow(path: list[str], value: Any, render: Render) -> str:
    """`a: {b: value}`."""
    inner = f"{_name(path[-1], render)}: {render(value, True).inline}"
    for part in reversed(path[:-1]):
        inner = f"{_name(part, render)}: {{{inner}}}"
    return inner


def _name(part: str, render: Render) -> str:
    return part if part.isidentifier() else render(part, True).inline


def _step(text: str) -> int:
    """How far keys stand in from their section, in the first place that shows it."""
    found = _FIRST_KEY.search(text)
    return len(found[1]) if found else 2
