"""Walks the schema: every leaf key with what an editor and a test need to know about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from llmtui.core.preset.schema import Preset, Section


@dataclass(frozen=True, slots=True)
class Leaf:
    """One key. `kind` is int, float, bool, text, choice, list or map; `optional` means null is allowed."""

    key: str
    kind: str
    default: Any
    required: bool
    optional: bool
    choices: tuple[str, ...]
    help: str
    unit: str
    minimum: float | None
    maximum: float | None

    @property
    def section(self) -> str:
        """The dotted name of the section, empty at the top."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class SectionInfo:
    """One section; an optional one may be absent, and that means something."""

    key: str
    optional: bool
    help: str


def walk_leaves(model: type[Section] = Preset, prefix: str = "") -> Iterator[Leaf]:
    """Every leaf of the schema in its order."""
    for name, field in model.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None:
            yield from walk_leaves(section, f"{prefix}{name}.")
        else:
            yield _leaf(f"{prefix}{name}", field)


def walk_sections(model: type[Section] = Preset, prefix: str = "") -> Iterator[SectionInfo]:
    """Every section in its order."""
    for name, field in model.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None:
            yield SectionInfo(f"{prefix}{name}", NoneType in get_args(field.annotation), field.description or "")
            yield from walk_sections(section, f"{prefix}{name}.")


def section_model(key: str) -> type[Section] | None:
    """The model of a section by its dotted name; the preset itself for the empty name."""
    model: type[Section] | None = Preset
    for part in key.split(".") if key else ():
        field = model.model_fields.get(part) if model else None
        model = _section_of(field.annotation) if field else None
    return model


def value_at(preset: Preset, key: str) -> Any:
    """The value of a dotted key; None when its section is absent."""
    value: Any = preset
    for part in key.split("."):
        value = getattr(value, part, None)
    return value


@cache
def text_keys() -> frozenset[str]:
    """The keys that hold text, or a list or map of texts: what is written there is never a number."""
    return frozenset(_text_keys(Preset, ""))


def _text_keys(model: type[Section], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        section = _section_of(field.annotation)
        if section is not None:
            yield from _text_keys(section, f"{prefix}{name}.")
            continue
        members = _members(field.annotation)
        inner = [part for m in members for arg in get_args(m)[-1:] if get_origin(m) in (list, dict)
                 for part in _members(arg)]  # fmt: skip
        if str in (*members, *inner) and int not in inner:
            yield f"{prefix}{name}"


def _section_of(annotation: Any) -> type[Section] | None:
    for candidate in _members(annotation):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate
    return None


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return tuple(m for a in get_args(annotation) for m in _members(a))
    if hasattr(annotation, "__metadata__"):
        return _members(annotation.__origin__)
    return (annotation,)


def _leaf(key: str, field: FieldInfo) -> Leaf:
    members = [m for m in _members(field.annotation) if m is not NoneType]
    choices = tuple(str(c) for m in members if get_origin(m) is Literal for c in get_args(m))
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    limits = {type(m): m for m in field.metadata}
    low = next((float(getattr(limits[t], a)) for t, a in ((Ge, "ge"), (Gt, "gt")) if t in limits), None)
    high = next((float(getattr(limits[t], a)) for t, a in ((Le, "le"), (Lt, "lt")) if t in limits), None)
    required = field.default is PydanticUndefined
    return Leaf(
        key=key, kind=_kind(members), default=None if required else field.default, required=required,
        optional=NoneType in get_args(field.annotation), choices=choices, help=field.description or "",
        unit=str(extra.get("unit", "")), minimum=low, maximum=high,
    )  # fmt: skip


def _kind(members: list[Any]) -> str:
    origins = {get_origin(m) or m for m in members}
    for kind, types in (("list", {list}), ("map", {dict}), ("bool", {bool}), ("float", {float}), ("int", {int})):
        if origins & types:
            return kind
    return "choice" if Literal in origins else "text"
