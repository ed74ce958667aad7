"""A model's shape from its config alone: a folder, a run's result, a GGUF file, the hub's cache, or the bundled table."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from llmtui.core.errors import LlmtuiError
from llmtui.core.preset.library import bundled_folder


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a decoder-only transformer. `linears` are (name, inputs, outputs) of one layer."""

    family: str
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    intermediate: int
    positions: int | None
    tied: bool
    linears: tuple[tuple[str, int, int], ...]
    gated: bool

    @property
    def layer_parameters(self) -> int:
        """Weights of the linear layers of one block."""
        return sum(inputs * outputs for _, inputs, outputs in self.linears)

    @property
    def matrix_parameters(self) -> int:
        """Weights that quantisation touches: all blocks' linear layers."""
        return self.layers * self.layer_parameters

    @property
    def embedding_parameters(self) -> int:
        """Input embedding and output head (once when tied)."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def small_parameters(self) -> int:
        """Norms and biases, about."""
        biases = sum(o for _, _, o in self.linears) if self.family == "gpt_neox" else 0
        norms = 4 * self.hidden if self.family == "gpt_neox" else 2 * self.hidden
        return self.layers * (biases + norms) + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All of them."""
        return self.matrix_parameters + self.embedding_parameters + self.small_parameters

    def cache_bytes_per_token(self, width: int) -> int:
        """Key and value cache of one token, all layers; `width` bytes per number."""
        head = self.hidden // self.heads
        return 2 * self.layers * self.key_value_heads * head * width


def shape_of(config: dict[str, Any]) -> Shape | None:
    """The shape a `config.json` describes; None for families whose arithmetic is not known here."""
    family = str(config.get("model_type", ""))
    try:
        if family in ("gpt_neox", "gpt_neox_japanese"):
            h, f = int(config["hidden_size"]), int(config.get("intermediate_size", 4 * config["hidden_size"]))
            linears = (("query_key_value", h, 3 * h), ("dense", h, h), ("dense_h_to_4h", h, f), ("dense_4h_to_h", f, h))
            return _shape(config, "gpt_neox", h, int(config["num_attention_heads"]), f, linears, gated=False)
        if family == "gpt2":
            h, f = int(config["n_embd"]), int(config.get("n_inner") or 4 * config["n_embd"])
            linears = (("c_attn", h, 3 * h), ("c_proj", h, h), ("c_fc", h, f), ("c_proj", f, h))
            renamed = config | {"num_hidden_layers": config["n_layer"], "num_attention_heads": config["n_head"],
                                "hidden_size": h, "tie_word_embeddings": True,
                                "max_position_embeddings": config.get("n_positions")}  # fmt: skip
            return _shape(renamed, "gpt2", h, int(config["n_head"]), f, linears, gated=False)
        if "num_key_value_heads" in config or family in ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2"):
            h, f = int(config["hidden_size"]), int(config["intermediate_size"])
            heads = int(config["num_attention_heads"])
            kv = int(config.get("num_key_value_heads") or heads)
            size = int(config.get("head_dim") or h // heads)
            linears = (
                ("q_proj", h, heads * size), ("k_proj", h, kv * size), ("v_proj", h, kv * size), ("o_proj", heads * size, h),
                ("gate_proj", h, f), ("up_proj", h, f), ("down_proj", f, h),
            )  # fmt: skip
            return _shape(config, "llama", h, kv, f, linears, gated=True)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None
    return None


def _shape(
    config: dict[str, Any], family: str, hidden: int, kv: int, intermediate: int,
    linears: tuple[tuple[str, int, int], ...], *, gated: bool,
) -> Shape:  # fmt: skip
    positions = config.get("max_position_embeddings")
    return Shape(
        family=family, vocabulary=int(config["vocab_size"]), hidden=hidden, layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]), key_value_heads=kv, intermediate=intermediate,
        positions=int(positions) if positions else None, tied=bool(config.get("tie_word_embeddings", family == "gpt2")),
        linears=linears, gated=gated,
    )  # fmt: skip


def find_config(name: str, base_folder: Path) -> tuple[dict[str, Any] | None, str]:
    """A model's config and where it was found; None when it is not on this machine."""
    if name.startswith("run:"):
        return _of_run(name.removeprefix("run:"))
    path = base_folder / Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        return _of_gguf(path)
    if (path / "config.json").is_file():
        return _read(path / "config.json"), str(path)
    cached = _hub_cache(name)
    if cached is not None:
        return _read(cached), "the hub's cache"
    known = known_shapes().get(name)
    return known, "the table of known models" if known else "not on this machine"


@cache
def known_shapes() -> dict[str, dict[str, Any]]:
    """The bundled table of shapes."""
    from ruamel.yaml import YAML

    text = (bundled_folder() / "reference" / "models.yaml").read_text("utf-8")
    loaded: dict[str, dict[str, Any]] = YAML(typ="safe", pure=True).load(text)
    return loaded


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _of_run(reference: str) -> tuple[dict[str, Any] | None, str]:
    from llmtui.core.process.launch import finished_run

    try:
        directory = finished_run(reference)
    except LlmtuiError as error:
        return None, error.message
    if directory.model.is_dir():
        return _read(directory.model / "config.json"), directory.id
    adapter = _read(directory.adapter / "adapter_config.json") or {}
    return find_config(str(adapter.get("base_model_name_or_path", "")), directory.path)


def _hub_cache(name: str) -> Path | None:
    root = os.environ.get("HF_HUB_CACHE") or os.path.join(os.environ.get("HF_HOME", "~/.cache/huggingface"), "hub")
    folder = Path(root).expanduser() / f"models--{name.replace('/', '--')}" / "snapshots"
    found = sorted(folder.glob("*/config.json")) if folder.is_dir() else []
    return found[-1] if found else None


def _of_gguf(path: Path) -> tuple[dict[str, Any] | None, str]:
    if not path.is_file():
        return None, "there is no such file"
    from gguf import GGUFReader

    reader = GGUFReader(path)

    def value(key: str) -> Any:
        field = reader.get_field(key)
        return None if field is None else field.contents()

    family = value("general.architecture")
    tokens = reader.get_field("tokenizer.ggml.tokens")
    names = {tensor.name for tensor in reader.tensors}
    config = {
        "model_type": family, "hidden_size": value(f"{family}.embedding_length"),
        "num_hidden_layers": value(f"{family}.block_count"), "num_attention_heads": value(f"{family}.attention.head_count"),
        "num_key_value_heads": value(f"{family}.attention.head_count_kv"),
        "intermediate_size": value(f"{family}.feed_forward_length"),
        "max_position_embeddings": value(f"{family}.context_length"),
        "vocab_size": value(f"{family}.vocab_size") or (len(tokens.data) if tokens else 0),
        "tie_word_embeddings": "output.weight" not in names,
    }  # fmt: skip
    return config, path.name
