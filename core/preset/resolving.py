"""The rerunnable preset of a run: everything written out, paths absolute."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from llmtui.core.preset.paths import PATH_KEYS, absolute_at
from llmtui.core.preset.reading import LoadedPreset


def resolved_preset(loaded: LoadedPreset) -> Any:
    """The preset with absolute paths: relative ones to the preset's folder, those of `--set` to the working folder."""
    data = loaded.preset.model_dump()
    from_sets = {assignment.partition("=")[0].strip() for assignment in loaded.sets}
    for key in PATH_KEYS:
        *sections, name = key.split(".")
        holder: Any = data
        for section in sections:
            holder = holder.get(section) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(name), str):
            holder[name] = absolute_at(key, holder[name], Path.cwd() if key in from_sets else loaded.folder)
    return type(loaded.preset).model_validate(data)


def resolve(loaded: LoadedPreset) -> str:
    """The text of `preset.yaml` in the run directory; reading it gives an equal preset."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 4096
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = StringIO()
    yaml.dump(resolved_preset(loaded).model_dump(), stream)
    return stream.getvalue()
