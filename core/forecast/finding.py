"""A model's config on this machine, without a library or a network: a folder, a run's result, a GGUF file, the hub's
cache, or the bundled table of known models."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from llmtui.core.errors import LlmtuiError
from llmtui.core.home import runs_folder
from llmtui.core.preset.library import bundled_folder, load_preset
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import run_directories

Config = dict[str, Any]


def find_config(name: str, base_folder: Path) -> tuple[Config | None, str]:
    """A model's config and where it was found; None with the reason when it is not on this machine."""
    if name.startswith("run:"):
        return _of_run(name.removeprefix("run:").partition("@")[0])
    path = base_folder / Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        return _of_gguf(path)
    if path.is_dir():
        return _of_folder(path)
    known = known_models().get(name)
    cached = _hub_cache(name)
    if cached is not None:
        return _read(cached), "the hub's cache"
    return known, "the table of known models" if known else "it is not on this machine yet"


@cache
def known_models() -> dict[str, Config]:
    """The bundled table of shapes, by hub id."""
    return _table("models.yaml")


@cache
def known_rows() -> dict[str, int]:
    """Rows of the data sets that bundled presets name, by hub id."""
    return _table("datasets.yaml")


def _table(name: str) -> dict[str, Any]:
    from ruamel.yaml import YAML

    loaded = YAML(typ="safe", pure=True).load((bundled_folder() / "reference" / name).read_text("utf-8"))
    return dict(loaded)


def _read(path: Path) -> Config | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _of_folder(path: Path) -> tuple[Config | None, str]:
    adapter = _read(path / "adapter_config.json")
    if adapter is not None:
        return find_config(str(adapter.get("base_model_name_or_path") or ""), path)
    found = _read(path / "config.json")
    return found, str(path) if found else f"{path} has no readable config.json"


def _of_run(reference: str) -> tuple[Config | None, str]:
    """The newest run of that id, name or preset with a result."""
    matches = [d for d in run_directories(runs_folder()) if reference in ("last", d.id, *_names(d))]
    for directory in reversed(matches):
        for folder in (directory.model, directory.adapter):
            if folder.is_dir():
                found, source = _of_folder(folder)
                return found, directory.id if found else source
    why = f"run {matches[-1].id} has no result yet" if matches else f'there is no run "{reference}" yet'
    return _of_preset(reference, why)


def _of_preset(reference: str, why: str) -> tuple[Config | None, str]:
    """A run that is still to come has the shape of the model that its preset names."""
    try:
        loaded = load_preset(reference)
    except LlmtuiError:
        return None, why
    name = loaded.preset.model.name_or_path
    if name.startswith("run:"):
        return None, why
    found, source = find_config(name, loaded.folder)
    return found, f"the model of preset {reference}; {why}" if found else source


def _names(directory: RunDirectory) -> tuple[str, ...]:
    try:
        info = directory.info()
    except LlmtuiError:
        return ()
    return info.name, info.preset


def _hub_cache(name: str) -> Path | None:
    """The newest `config.json` of a hub id in huggingface_hub's cache (its folder layout is documented and stable)."""
    if name.count("/") > 1 or not name.strip("./"):
        return None
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "huggingface")
    root = Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")).expanduser()
    folder = root / f"models--{name.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text("ascii").strip()
    except (OSError, ValueError):
        commit = "*"
    try:
        found = sorted((folder / "snapshots").glob(f"{commit}/config.json"), key=lambda p: p.stat().st_mtime)
    except OSError:
        return None
    return found[-1] if found else None


def _of_gguf(path: Path) -> tuple[Config | None, str]:
    if not path.is_file():
        return None, f"there is no file {path}"
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
    except (OSError, ValueError) as error:
        return None, f"{path.name} cannot be read: {error}"

    def value(key: str) -> Any:
        field = reader.get_field(key)
        return None if field is None else field.contents()

    family = value("general.architecture")
    tokens = reader.get_field("tokenizer.ggml.tokens")
    config = {
        "model_type": family,
        "hidden_size": value(f"{family}.embedding_length"), "n_embd": value(f"{family}.embedding_length"),
        "num_hidden_layers": value(f"{family}.block_count"), "n_layer": value(f"{family}.block_count"),
        "num_attention_heads": value(f"{family}.attention.head_count"),
        "n_head": value(f"{family}.attention.head_count"),
        "num_key_value_heads": value(f"{family}.attention.head_count_kv"),
        "head_dim": value(f"{family}.attention.key_length"),
        "intermediate_size": value(f"{family}.feed_forward_length"),
        "max_position_embeddings": value(f"{family}.context_length"), "n_positions": value(f"{family}.context_length"),
        "vocab_size": value(f"{family}.vocab_size") or (len(tokens.data) if tokens else 0),
        "tie_word_embeddings": "output.weight" not in {tensor.name for tensor in reader.tensors},
    }  # fmt: skip
    return config, path.name
