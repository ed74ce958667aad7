"""A preset being edited: its text, what is wrong with it, and the way back. Pure: no screen, no file is written.

The text is the truth. Every change makes a new text through `core.preset`, which keeps comments and order.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.error import YAMLError

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset import (
    Leaf,
    LoadedPreset,
    Preset,
    SectionInfo,
    parse_preset,
    set_value,
    unset_value,
    unsupported,
    walk_leaves,
    walk_sections,
)
from llmtui.tui.widgets.editor_nodes import written_values
from llmtui.tui.widgets.editor_rows import FieldRow, FormRow, SectionRow
from llmtui.tui.widgets.editor_values import ValueTextError, flow_text, quoted, text_of, value_of

# Short spellings that presets accept; setting the key takes the short one's place.
_SHORT: Final = {"lora.lora_alpha": "lora.alpha", "lora.lora_dropout": "lora.dropout"}
# Sections that may be written as one value, and the key that it stands for.
_ONE_VALUE: Final = {"checkpoints.mirror": "path"}
_UNDO_STEPS: Final = 500


@dataclass(frozen=True, slots=True)
class Checked:
    """A text with what the reader says about it. `later` is valid but not runnable by this version."""

    text: str
    loaded: LoadedPreset | None
    problems: tuple[Problem, ...]
    later: tuple[Problem, ...] = ()

    @property
    def preset(self) -> Preset | None:
        """The preset, when there is nothing wrong."""
        return self.loaded.preset if self.loaded is not None else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader put right by itself."""
        return self.loaded.warnings if self.loaded is not None else ()


def check(text: str, path: Path | None, sets: tuple[str, ...] = ()) -> Checked:
    """Read a text with the preset reader."""
    try:
        loaded = parse_preset(text, path, sets)
    except PresetError as error:
        return Checked(text, None, error.problems)
    file = path.name if path is not None else "preset"
    return Checked(text, loaded, (), tuple(unsupported(loaded.preset, file, loaded.lines)))


class Document:
    """One preset in the editor.

    Args:
        text: YAML, a map; see `readable`.
        path: its file: names it in problems, and relative paths are relative to it.
    """

    def __init__(self, text: str, path: Path | None) -> None:
        self.path = path
        self.saved = text
        self.opened = text
        self._undo: list[tuple[str, str]] = []
        self._redo: list[tuple[str, str]] = []
        self._switched_off: dict[str, Any] = {}
        self.leaves = {leaf.key: leaf for leaf in walk_leaves()}
        self.sections = {section.key: section for section in walk_sections()}
        self._opened_values = written_values(text) or {}
        self._take(text)

    def _take(self, text: str) -> None:
        self.text = text
        self.values = written_values(text) or {}
        self.checked = check(text, self.path)

    @staticmethod
    def readable(text: str) -> bool:
        """Whether the form can show this text: it is a YAML map."""
        return written_values(text) is not None

    @property
    def changed(self) -> bool:
        """Whether the text differs from the file."""
        return self.text != self.saved

    # --- values

    def text_of(self, key: str) -> str:
        """What the field shows: the value in the file, else the default."""
        written = self._written(key, self.values)
        return written if written is not None else self.default_of(key)

    def default_of(self, key: str) -> str:
        """The default as text; "required" has none."""
        leaf = self.leaves[key]
        return "required" if leaf.required else text_of(leaf.default) if leaf.default != "" else '""'

    def opened_text_of(self, key: str) -> str:
        """What the field showed when the file was opened."""
        written = self._written(key, self._opened_values)
        return written if written is not None else self.default_of(key)

    def is_set(self, key: str) -> bool:
        """Whether the file has the key."""
        return self._written(key, self.values) is not None

    def is_on(self, section: str) -> bool:
        """Whether an optional section is in the file (`lora: null` is not)."""
        return self.values.get(section, "null") != "null"

    @staticmethod
    def _written(key: str, values: dict[str, str]) -> str | None:
        found = values.get(key, values.get(_SHORT.get(key, key)))
        section, _, name = key.rpartition(".")
        if found is None and _ONE_VALUE.get(section) == name:
            whole = values.get(section, "null")
            return None if whole == "null" or whole.startswith("{") else whole
        return found

    # --- changes

    def trial(self, key: str, typed: str) -> Checked:
        """What the reader would say if this were kept; the document stays as it is.

        Raises:
            ValueTextError: the typed text is not YAML.
        """
        if not typed.strip():
            return check(self._unset(key), self.path)
        value = self._value(key, typed)
        raw = quoted(value) if isinstance(value, str) else typed.strip() if value is not None else "null"
        return check(self._spelled_out(self.text, key), self.path, (f"{key}={raw}",))

    def set(self, key: str, typed: str) -> bool:
        """Keep a typed value (nothing typed: the default); whether the text changed.

        Raises:
            ValueTextError: the typed text is not YAML, or a value that no file can hold.
        """
        if not typed.strip():
            return self.unset(key)
        if self.is_set(key) and typed.strip() == self.text_of(key):
            return False
        try:
            value = self._value(key, typed)
            return self._change(set_value(self._spelled_out(self.text, key), key, value), key)
        except (YAMLError, UnicodeError, TypeError) as error:
            raise ValueTextError(f"cannot be written: {str(error).splitlines()[0]}") from error

    def unset(self, key: str) -> bool:
        """Take a key out of the file, so that its default holds; whether the text changed."""
        return self._change(self._unset(key), key)

    def _unset(self, key: str) -> str:
        text = unset_value(self._spelled_out(self.text, key), key)
        section = key.rpartition(".")[0]
        optional = section in self.sections and self.sections[section].optional and self.is_on(section)
        # An empty section goes with its last key; an optional one stays, because its absence means something.
        if optional and not (written_values(text) or {}).get(section):
            return set_value(text, section, {})
        return text

    def cycle(self, key: str, by: int) -> bool:
        """The next choice of a field that has some; whether there was one."""
        choices = self.choices_of(key)
        if not choices:
            return False
        now = self.text_of(key)
        place = choices.index(now) if now in choices else (-1 if by > 0 else 0)
        return self.set(key, choices[(place + by) % len(choices)])

    def choices_of(self, key: str) -> tuple[str, ...]:
        """The words a field knows; the two of a switch."""
        leaf = self.leaves[key]
        return ("false", "true") if leaf.kind == "bool" else leaf.choices

    def switch(self, section: str) -> bool:
        """Leave an optional section out, or write it; its values come back as they were. Whether the text changed."""
        if self.is_on(section):
            self._switched_off[section] = self.text
            return self._change(unset_value(self.text, section), section)
        before = self._switched_off.get(section)
        return self._change(set_value(self.text, section, _tree_of(before, section) if before else {}), section)

    def replace(self, text: str) -> bool:
        """Another text altogether (from `$EDITOR`); whether it differs."""
        return self._change(text, "")

    def undo(self) -> str | None:
        """Take the last change back; the key it was about (empty: the whole text), None when there is nothing."""
        return self._swap(self._undo, self._redo)

    def redo(self) -> str | None:
        """Take the last undo back."""
        return self._swap(self._redo, self._undo)

    def mark_saved(self, path: Path) -> None:
        """The text stands in this file now."""
        self.saved = self.text
        self.path = path
        self.checked = check(self.text, path)

    def _swap(self, source: list[tuple[str, str]], other: list[tuple[str, str]]) -> str | None:
        if not source:
            return None
        text, key = source.pop()
        other.append((self.text, key))
        self._take(text)
        return key

    def _change(self, text: str, key: str) -> bool:
        if text == self.text:
            return False
        self._undo.append((self.text, key))
        del self._undo[:-_UNDO_STEPS]
        self._redo.clear()
        self._take(text)
        return True

    def _value(self, key: str, typed: str) -> Any:
        return value_of(typed, only_text=self.leaves[key].kind in ("text", "choice"))

    def _spelled_out(self, text: str, key: str) -> str:
        """The text with the long spelling where this key has to be changed."""
        short = _SHORT.get(key)
        if short is not None and short in self.values:
            return unset_value(text, short)
        section = key.rpartition(".")[0]
        name = _ONE_VALUE.get(section)
        value = self._written(f"{section}.{name}", self.values) if name is not None else None
        if name is not None and value is not None and f"{section}.{name}" not in self.values:
            return set_value(text, section, {name: value_of(value, only_text=True)})
        return text

    # --- what is shown

    def rows(self) -> tuple[FormRow, ...]:
        """The form: the preset's own keys, then section by section, the sections inside a section last."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[FormRow]:
        yield SectionRow("preset", False, True, "", "")
        yield from (self._field(leaf, "") for leaf in self.leaves.values() if not leaf.section)
        for section in _ordered(self.sections.values()):
            yield self._section(section)
            top = section.key
            yield from (self._field(leaf, top) for leaf in self.leaves.values() if leaf.section == section.key)

    def _section(self, section: SectionInfo) -> SectionRow:
        on = not section.optional or self.is_on(section.key)
        problem = self.problem_at(section.key)
        return SectionRow(section.key, section.optional, on, problem.problem if problem else "", section.help)

    def _field(self, leaf: Leaf, section: str) -> FieldRow:
        info = self.sections.get(section)
        text, problem = self.text_of(leaf.key), self.problem_of(leaf.key)
        is_set = self.is_set(leaf.key)
        return FieldRow(
            key=leaf.key, section=section, name=leaf.name, text=text, is_set=is_set,
            changed=text != self.opened_text_of(leaf.key),
            off=info is not None and info.optional and not self.is_on(section),
            default=self.default_of(leaf.key), unit=leaf.unit, choices=self.choices_of(leaf.key), accepts=accepts(leaf),
            help=leaf.help, problem=problem.problem if problem is not None else "",
            later=any(p.field == leaf.key for p in self.checked.later),
        )  # fmt: skip

    def problem_of(self, key: str) -> Problem | None:
        """The first problem of this key or of something inside it."""
        inside = key + "."
        return next((p for p in self.checked.problems if p.field == key or p.field.startswith(inside)), None)

    def problem_at(self, key: str) -> Problem | None:
        """The first problem of exactly this key."""
        return next((p for p in self.checked.problems if p.field == key), None)

    def difference(self) -> list[str]:
        """Lines of a unified diff against the file, without its head."""
        lines = difflib.unified_diff(self.saved.splitlines(), self.text.splitlines(), lineterm="", n=2)
        return list(lines)[2:]


_KINDS: Final = {"int": "a whole number", "float": "a number", "list": "a list: [a, b]", "map": "a map: {a: b}"}


def accepts(leaf: Leaf) -> str:
    """What may be typed, in words: `a whole number ≥ 1, or null`. Choices are shown apart."""
    words = _KINDS.get(leaf.kind, "")
    if words and leaf.choices:
        words = f"or {words}"
    if leaf.minimum is not None:
        words += f" ≥ {leaf.minimum:g}"
    if leaf.maximum is not None:
        words += f", ≤ {leaf.maximum:g}"
    return f"{words}, or null" if words and leaf.optional else words


def _ordered(sections: Any) -> list[SectionInfo]:
    """Each section followed by the ones inside it."""
    return sorted(sections, key=lambda section: _place(list(sections), section))


def _place(sections: list[SectionInfo], section: SectionInfo) -> tuple[int, ...]:
    names = [s.key for s in sections]
    parts = section.key.split(".")
    return tuple(names.index(".".join(parts[: i + 1])) for i in range(len(parts)))


def _tree_of(text: str, section: str) -> Any:
    """The section as it stood in an earlier text."""
    from ruamel.yaml import YAML

    tree: Any = YAML(typ="rt", pure=True).load(text)
    for part in section.split("."):
        tree = tree[part]
    return dict(tree) if isinstance(tree, dict) else {}


__all__ = ["Checked", "Document", "ValueTextError", "check", "flow_text"]
