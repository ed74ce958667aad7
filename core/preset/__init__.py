"""Presets: the schema, reading YAML with line numbers and every problem at once, editing, the library.

No torch and no model library; a check takes milliseconds.
"""

from __future__ import annotations

from llmtui.core.preset.editing import set_value, unset_value
from llmtui.core.preset.later import unsupported
from llmtui.core.preset.leaves import Leaf, SectionInfo, walk_leaves, walk_sections
from llmtui.core.preset.library import (
    PresetEntry,
    copy_to_user,
    differences,
    find_preset,
    list_presets,
    load_preset,
    value_of,
)
from llmtui.core.preset.paths import absolute
from llmtui.core.preset.reading import LoadedPreset, parse_preset
from llmtui.core.preset.resolving import resolve, resolved_preset
from llmtui.core.preset.schema import Preset

__all__ = [
    "Leaf", "LoadedPreset", "Preset", "PresetEntry", "SectionInfo", "absolute", "copy_to_user", "differences",
    "find_preset", "list_presets", "load_preset", "parse_preset", "resolve", "resolved_preset", "set_value",
    "unset_value", "unsupported", "value_of", "walk_leaves", "walk_sections",
]  # fmt: skip
