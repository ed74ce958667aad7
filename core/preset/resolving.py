"""The rerunnable preset of a run: everything written out, paths absolute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmtui.core.preset.paths import PATH_KEYS, absolute_at, absolute_sources
from llmtui.core.preset.reading import LoadedPreset
from llmtui.core.preset.schema import Preset
from llmtui.core.preset.writing import written


def resolved_preset(loaded: LoadedPreset) -> Preset:
    """The preset with absolute paths: relative ones to the preset's folder, those of `--set` to the working folder."""
    data = loaded.preset.model_dump()
    given = [assignment.partition("=")[0].strip() for assignment in loaded.sets]

    def folder_of(key: str) -> Path:
        from_set = any(key == part or key.startswith(f"{part}.") for part in given)
        return Path.cwd() if from_set else loaded.folder

    for key in PATH_KEYS:
        *sections, name = key.split(".")
        holder: Any = data
        for section in sections:
            holder = holder.get(section) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(name), str):
            holder[name] = absolute_at(key, holder[name], folder_of(key))
    data["dataset"]["sources"] = absolute_sources(data["dataset"]["sources"], folder_of("dataset.sources"))
    return Preset.model_validate(data)


def resolve(loaded: LoadedPreset) -> str:
    """The text of `preset.yaml` in the run directory; reading it gives an equal preset."""
    return written(resolved_preset(loaded))
