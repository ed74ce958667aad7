"""The rerunnable preset of a run: everything written out, paths absolute."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from llmtui.core.preset.reading import LoadedPreset

_PATH_KEYS: Final = (
    "model.name_or_path", "dataset.name_or_path", "dataset.val", "dataset.template", "gpu_split.deepspeed_config",
    "checkpoints.mirror.path", "sweep.text",
)  # fmt: skip


def looks_like_path(value: str) -> bool:
    """Whether a name can only be a path: it starts like one, or ends like a file that is none of the hub's ids."""
    endings = (".gguf", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".txt", ".gz", ".jinja", ".yaml")
    return value.startswith(("/", "./", "../", "~")) or value in (".", "..") or value.lower().endswith(endings)


def absolute(value: str, folder: Path) -> str:
    """A path made absolute against a folder; hub ids, `run:ID` and built-in names stay."""
    if value.startswith("run:"):
        return value
    path = Path(value).expanduser()
    candidate = path if path.is_absolute() else folder / path
    if looks_like_path(value) or ("/" in value and candidate.exists()) or candidate.is_dir():
        return str(Path(*candidate.absolute().parts)) if ".." not in candidate.parts else str(candidate.resolve())
    return value


def resolved_preset(loaded: LoadedPreset) -> Any:
    """The preset with absolute paths: relative ones to the preset's folder, those of `--set` to the working folder."""
    data = loaded.preset.model_dump()
    from_sets = {assignment.partition("=")[0].strip() for assignment in loaded.sets}
    for key in _PATH_KEYS:
        *sections, name = key.split(".")
        holder: Any = data
        for section in sections:
            holder = holder.get(section) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(name), str):
            holder[name] = absolute(holder[name], Path.cwd() if key in from_sets else loaded.folder)
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
