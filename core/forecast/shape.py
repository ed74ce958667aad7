"""A model's shape from its config alone: how many weights, and where.

Exact for the families listed here (a test counts the parameters of real models); other families have no shape, and
their memory is shown as "–" rather than guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

Block = Literal["gpt_neox", "gpt2", "llama"]
Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear layer of a block: its name, sizes, and whether it has a bias."""

    name: str
    inputs: int
    outputs: int
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a decoder-only transformer.

    `block` is the kind of layer: its activations are counted alike. `attention` is heads × head size, `key_value` the
    same for the cached heads; `norms` are the norm weights of one block, `final_norm` those after the last.
    """

    block: Block
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    attention: int
    key_value: int
    intermediate: int
    positions: int | None
    tied: bool
    linears: tuple[Linear, ...]
    norms: int
    final_norm: int
    learned_positions: int = 0
    head_bias: bool = False
    activation: str = ""

    @property
    def matrix_parameters(self) -> int:
        """Weights that quantisation touches: the linear layers of all blocks, without their biases."""
        return self.layers * sum(linear.inputs * linear.outputs for linear in self.linears)

    @property
    def embedding_parameters(self) -> int:
        """Input embedding, learned positions, and the output head unless it is tied to the embedding."""
        head = 0 if self.tied else self.vocabulary * self.hidden
        return self.vocabulary * self.hidden + self.learned_positions * self.hidden + head

    @property
    def small_parameters(self) -> int:
        """Norms and biases."""
        biases = sum(linear.outputs for linear in self.linears if linear.bias)
        head = self.vocabulary if self.head_bias else 0
        return self.layers * (biases + self.norms) + self.final_norm + head

    @property
    def parameters(self) -> int:
        """All of them, each counted once."""
        return self.matrix_parameters + self.embedding_parameters + self.small_parameters

    def cache_bytes_per_token(self, width: int) -> int:
        """Key and value cache of one token over all layers; `width` bytes per number."""
        return 2 * self.layers * self.key_value * width


def shape_of(config: Config) -> Shape | None:
    """The shape a `config.json` describes; None for families whose arithmetic is not known here."""
    build = _FAMILIES.get(str(config.get("model_type", "")))
    if build is None:
        return None
    try:
        return build(config)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _gpt_neox(config: Config) -> Shape:
    h, f = int(config["hidden_size"]), int(config.get("intermediate_size") or 4 * config["hidden_size"])
    bias = bool(config.get("attention_bias", True))
    return Shape(
        block="gpt_neox", vocabulary=int(config["vocab_size"]), hidden=h, layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]), attention=h, key_value=h, intermediate=f,
        positions=_optional(config.get("max_position_embeddings")), tied=bool(config.get("tie_word_embeddings", False)),
        linears=(Linear("query_key_value", h, 3 * h, bias), Linear("dense", h, h, bias),
                 Linear("dense_h_to_4h", h, f, True), Linear("dense_4h_to_h", f, h, True)),
        norms=4 * h, final_norm=2 * h, activation=str(config.get("hidden_act", "gelu")),
    )  # fmt: skip


def _gpt2(config: Config) -> Shape:
    h, f = int(config["n_embd"]), int(config.get("n_inner") or 4 * config["n_embd"])
    positions = int(config["n_positions"])
    return Shape(
        block="gpt2", vocabulary=int(config["vocab_size"]), hidden=h, layers=int(config["n_layer"]),
        heads=int(config["n_head"]), attention=h, key_value=h, intermediate=f, positions=positions,
        tied=bool(config.get("tie_word_embeddings", True)),
        linears=(Linear("c_attn", h, 3 * h, True), Linear("c_proj", h, h, True), Linear("c_fc", h, f, True),
                 Linear("c_proj", f, h, True)),
        norms=4 * h, final_norm=2 * h, learned_positions=positions,
        activation=str(config.get("activation_function", "gelu_new")),
    )  # fmt: skip


def _llama(config: Config) -> Shape:
    family = str(config["model_type"])
    h, f, heads = int(config["hidden_size"]), int(config["intermediate_size"]), int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    size = int(config.get("head_dim") or h // heads)
    wide, narrow = heads * size, kv_heads * size
    query_bias = bool(config.get("attention_bias", family == "qwen2"))
    out_bias = query_bias and family != "qwen2"
    mlp_bias = bool(config.get("mlp_bias", False))
    norms = {"gemma2": 4 * h, "gemma3_text": 4 * h + 2 * size, "qwen3": 2 * h + 2 * size}.get(family, 2 * h)
    return Shape(
        block="llama", vocabulary=int(config["vocab_size"]), hidden=h, layers=int(config["num_hidden_layers"]),
        heads=heads, attention=wide, key_value=narrow, intermediate=f,
        positions=_optional(config.get("max_position_embeddings")),
        tied=bool(config.get("tie_word_embeddings", family.startswith("gemma"))),
        linears=(
            Linear("q_proj", h, wide, query_bias), Linear("k_proj", h, narrow, query_bias),
            Linear("v_proj", h, narrow, query_bias), Linear("o_proj", wide, h, out_bias),
            Linear("gate_proj", h, f, mlp_bias), Linear("up_proj", h, f, mlp_bias), Linear("down_proj", f, h, mlp_bias),
        ),
        norms=norms, final_norm=h, activation=str(config.get("hidden_act", "silu")),
    )  # fmt: skip


def _optional(value: Any) -> int | None:
    return int(value) if value else None


_LLAMAS: Final = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "smollm3", "granite")
_FAMILIES: Final = {
    "gpt_neox": _gpt_neox, "gptneox": _gpt_neox, "gpt2": _gpt2, **dict.fromkeys(_LLAMAS, _llama),
}  # fmt: skip
