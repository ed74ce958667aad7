"""Which keys hold paths, and what a path in a preset is relative to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from llmtui.core.preset.schema import TEMPLATES

PATH_KEYS: Final = (
    "model.name_or_path", "dataset.name_or_path", "dataset.val", "dataset.template", "gpu_split.deepspeed_config",
    "checkpoints.mirror.path", "sweep.text",
)  # fmt: skip
# These can be nothing but paths; the others may be hub ids or names.
_ALWAYS_PATHS: Final = frozenset({"gpu_split.deepspeed_config", "checkpoints.mirror.path", "sweep.text"})
_ENDINGS: Final = (
    ".gguf", ".json", ".jsonl", ".csv", ".tsv", ".parquet", ".txt", ".gz", ".jinja", ".jinja2", ".j2", ".yaml",
)  # fmt: skip


def looks_like_path(value: str) -> bool:
    """Whether a name can only be a path: it starts like one, or ends like a file that is none of the hub's ids."""
    return value.startswith(("/", "./", "../", "~")) or value in (".", "..") or value.lower().endswith(_ENDINGS)


def is_split_name(value: str) -> bool:
    """Whether a `dataset.val` is the name of a hub set's split; everything else is a file or folder."""
    return not looks_like_path(value) and "/" not in value


def absolute(value: str, folder: Path) -> str:
    """A path made absolute against a folder; hub ids, `run:ID` and built-in names stay."""
    if value.startswith("run:"):
        return value
    candidate = folder / Path(value).expanduser()
    if looks_like_path(value) or ("/" in value and candidate.exists()) or candidate.is_dir():
        return _whole(candidate)
    return value


def absolute_at(key: str, value: str, folder: Path) -> str:
    """The value of one of `PATH_KEYS` made absolute; a template's or split's name stays beside a folder called so."""
    if key == "dataset.template" and (value in TEMPLATES or value.startswith("chat:")):
        return value
    if key == "dataset.val" and is_split_name(value):
        return value
    return _whole(folder / Path(value).expanduser()) if key in _ALWAYS_PATHS else absolute(value, folder)


def _whole(path: Path) -> str:
    return str(path.absolute()) if ".." not in path.parts else str(path.resolve())


def absolute_sources(sources: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """`dataset.sources` with every path made absolute."""
    return [{**source, "name_or_path": absolute(source["name_or_path"], folder)} for source in sources]
