"""Parameters counted from configs alone equal those of the real models (built without storage)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from llmtui.core.forecast.finding import known_models
from llmtui.core.forecast.memory import trainable_parameters
from llmtui.core.forecast.shape import shape_of
from llmtui.core.preset import parse_preset

SMALL: Final = {"vocab_size": 200, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
                "intermediate_size": 80, "max_position_embeddings": 64}  # fmt: skip
CONFIGS: Final[list[dict[str, Any]]] = [
    {"model_type": "gpt_neox", **SMALL},
    {"model_type": "gpt_neox", **SMALL, "tie_word_embeddings": True, "attention_bias": False},
    {"model_type": "gpt2", "vocab_size": 200, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64},
    {"model_type": "llama", **SMALL, "num_key_value_heads": 2},
    {"model_type": "llama", **SMALL, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    {"model_type": "mistral", **SMALL, "num_key_value_heads": 2, "head_dim": 16},
    {"model_type": "qwen2", **SMALL, "num_key_value_heads": 2},
    {"model_type": "qwen3", **SMALL, "num_key_value_heads": 2, "head_dim": 16},
    {"model_type": "gemma", **SMALL, "num_key_value_heads": 1, "head_dim": 16},
    {"model_type": "gemma2", **SMALL, "num_key_value_heads": 2, "head_dim": 16},
    {"model_type": "gemma3_text", **SMALL, "num_key_value_heads": 2, "head_dim": 16},
    {"model_type": "smollm3", **SMALL, "num_key_value_heads": 2, "tie_word_embeddings": True, "pad_token_id": 1},
    {"model_type": "granite", **SMALL, "num_key_value_heads": 2},
]


def name(config: dict[str, Any]) -> str:
    """The family."""
    return str(config["model_type"])


def real_model(config: dict[str, Any]) -> Any:
    """The model itself, on the meta device."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **settings))


@pytest.mark.parametrize("config", CONFIGS, ids=name)
def test_parameters(config: dict[str, Any]) -> None:
    shape = shape_of(config)
    assert shape is not None
    assert shape.parameters == real_model(config).num_parameters()


@pytest.mark.parametrize("config", CONFIGS, ids=name)
@pytest.mark.parametrize("extra", ["", ", use_dora: true", ", target_modules: [q_proj, c_attn, query_key_value]"])
def test_lora_parameters(config: dict[str, Any], extra: str) -> None:
    from peft import LoraConfig, get_peft_model

    shape, model = shape_of(config), real_model(config)
    preset = parse_preset(
        f"model: {{name_or_path: x}}\ndataset: {{name_or_path: x.jsonl}}\nlora: {{r: 4{extra}}}"
    ).preset
    assert shape is not None and preset.lora is not None
    targets: Any = preset.lora.target_modules
    if isinstance(targets, list):
        targets = [t for t in targets if any(linear.name == t for linear in shape.linears)]
    tuned = get_peft_model(
        model, LoraConfig(r=4, target_modules=targets, use_dora=preset.lora.use_dora, task_type="CAUSAL_LM")
    )
    assert trainable_parameters(shape, preset) == sum(p.numel() for p in tuned.parameters() if p.requires_grad)


def test_the_known_models_have_their_published_sizes() -> None:
    sizes = {
        "cyberagent/open-calm-7b": 6_872_178_688, "rinna/japanese-gpt-neox-3.6b": 3_607_142_400,
        "meta-llama/Llama-3.1-8B": 8_030_261_248, "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
    }  # fmt: skip
    for model, parameters in sizes.items():
        shape = shape_of(known_models()[model])
        assert shape is not None
        assert shape.parameters == pytest.approx(parameters, rel=1e-3), model


@pytest.mark.parametrize(
    "config", [{}, {"model_type": "mamba"}, {"model_type": "llama"}, {"model_type": "gpt2", "n_embd": "wide"}]
)
def test_what_is_not_known_has_no_shape(config: dict[str, Any]) -> None:
    assert shape_of(config) is None
