"""Under which name prepared rows are kept: everything that decides what they are, by content."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import xxhash

from llmtui.core.data.hub import split_revision
from llmtui.core.data.made import FORMAT
from llmtui.core.data.sources import sources_of, val_sources_of
from llmtui.core.preset import Preset

_TOKENIZER_FILES: Final = (
    "tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt", "*.model", "*.tiktoken",
    "chat_template*", "tokenization_*.py",
)  # fmt: skip
_POSITIONS: Final = ("max_position_embeddings", "n_positions", "max_seq_len")
_CHUNK: Final = 1 << 20


def cache_key(preset: Preset, base_folder: Path, tokenizer_folder: Path) -> str | None:
    """The name of the cached folder; None for a hub set that is not in the local cache yet.

    Args:
        base_folder: what relative paths are relative to.
        tokenizer_folder: where the tokenizer's files are.

    Raises:
        DataError: a data file is missing.
    """
    dataset = preset.dataset
    sources = sources_of(dataset, base_folder, lambda _: None)
    if dataset.val is not None:
        sources += val_sources_of(dataset, base_folder, lambda _: None)
    contents = [_hub_commit(s.name) if not s.files else [_content(path) for path in s.files] for s in sources]
    if None in contents:
        return None
    settings = dataset.model_dump(exclude={"padding", "name_or_path"})
    for source in settings["sources"]:
        del source["name_or_path"]
    facts = {
        "format": FORMAT, "data": contents, "names": [path.name for s in sources for path in s.files],
        "settings": settings, "seed": preset.training.seed, "template": _template(dataset.template, base_folder),
        "tokenizer": _tokenizer(tokenizer_folder), "code": preset.model.trust_remote_code,
        "with": [version(name) for name in ("transformers", "tokenizers", "jinja2")],
    }  # fmt: skip
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, default=str)
    return f"tokens-{xxhash.xxh3_128_hexdigest(text.encode())}"


def positions_in(folder: Path) -> int | None:
    """The model's longest sequence as its `config.json` says; None when it does not."""
    settings = _json(folder / "config.json")
    values = (settings.get(name) for name in _POSITIONS)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _content(path: Path) -> list[Any]:
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return [path.name, state.hexdigest()]


def _template(template: str, base_folder: Path) -> str:
    path = base_folder / Path(template).expanduser()
    return str(_content(path)[1]) if path.is_file() else template


def _tokenizer(folder: Path) -> list[Any]:
    files = {path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern) if path.is_file()}
    kind = _json(folder / "config.json").get("model_type")
    return [kind, *(_content(path) for path in sorted(files))]


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def hub_snapshot(name: str, revision: str | None) -> Path | None:
    """The folder of a hub model in the local cache, without asking the hub or importing its library."""
    commit = _cached_commit("models", name, revision)
    folder = _hub_folder("models", name) / "snapshots" / (commit or "")
    return folder if commit is not None and (folder / "config.json").is_file() else None


def _hub_commit(name: str) -> list[str] | None:
    """The set's commit in the local hub cache, without asking the hub."""
    identity, revision = split_revision(name)
    commit = _cached_commit("datasets", identity, revision)
    return [identity, commit] if commit is not None else None


def _cached_commit(kind: str, name: str, revision: str | None) -> str | None:
    if revision is not None and re.fullmatch("[0-9a-f]{40}", revision):
        return revision
    try:
        return (_hub_folder(kind, name) / "refs" / (revision or "main")).read_text("utf-8").strip()
    except OSError:
        return None


def _hub_folder(kind: str, name: str) -> Path:
    """huggingface_hub's layout and environment (docs: `HF_HOME`, `HF_HUB_CACHE`)."""
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Path(cache).expanduser() / f"{kind}--{name.replace('/', '--')}"
