"""Every key of the schema ends in an argument of a library, in our own settings, or in a refusal; none is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from llmtui.core.errors import LlmtuiError
from llmtui.core.preset import Preset, parse_preset, unsupported, walk_leaves
from llmtui.core.worker.arguments import everything, training_arguments, warmup_steps
from llmtui.core.worker.precision import Precision

BASE = """
model: {name_or_path: a/b, quantization: nf4}
dataset: {name_or_path: rows.jsonl, val_size: 4}
lora: {r: 8}
training: {eval_steps: 10, sample_prompts: [hello]}
generation: {do_sample: true}
"""
# Another valid value for keys whose type does not tell one.
OTHER: dict[str, Any] = {
    "model.name_or_path": "c/d", "model.revision": "v2", "dataset.name_or_path": "other.jsonl", "dataset.config": "ja",
    "dataset.template": "rinna", "dataset.val_size": 0.5, "dataset.columns": {"output": "answer"},
    "dataset.split": "test",
    "lora.target_modules": ["q_proj"], "lora.lora_dropout": 0.1, "training.warmup_steps": 0.1,
    "training.sample_prompts": ["bye"], "generation.system": "be kind", "gpu_split.gpus": "none",
    "training.lr_scheduler_type": "cosine", "generation.top_p": 0.5, "dataset.limit": 100, "training.max_steps": 50,
    "model.dtype": "float16", "model.compute_dtype": "float16", "model.attention": "eager",
    "dataset.sources": [{"name_or_path": "x.jsonl"}], "dataset.label.column": "label", "dataset.label.names": ["neg", "pos"],
    "dataset.val": "val.jsonl", "dataset.clean.symbols": "■", "dataset.clean.min_length": 5,
    "dataset.clean.max_length": 5, "checkpoints.mirror.path": "/mnt/x", "checkpoints.mirror.bandwidth": "20MB",
    "generation.prompts": ["hello"], "gpu_split.max_memory": {"0": "7GiB"}, "gpu_split.deepspeed_config": "ds.json",
    "training.early_stopping_patience": 3, "generation.temperature": 0.5, "training.eval_steps": 20,
}  # fmt: skip
# Read by the other processes of a run, not by the worker.
ELSEWHERE = {"description", "notify", "checkpoints.resume", "gpu_split.share", "limits.no_step_minutes",
             "limits.on_hang", "limits.restarts", "gpu_split.processes"}  # fmt: skip


def different(key: str, value: Any, kind: Any) -> Any:
    if key in OTHER:
        return OTHER[key]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    choices = [c for c in getattr(kind, "choices", ()) or () if c != value]
    if choices:
        return choices[0]
    raise AssertionError(f"name another value for {key} in OTHER")


def with_value(key: str, value: Any) -> Preset:
    import json

    return parse_preset(BASE, sets=[f"{key}={json.dumps(value)}"]).preset


@pytest.mark.parametrize("leaf", walk_leaves(), ids=lambda leaf: leaf.key)
def test_another_value_of_any_key_changes_something_or_is_refused(leaf: Any) -> None:
    if leaf.key in ELSEWHERE or leaf.key.startswith(("sweep.", "limits.")):
        return
    base = parse_preset(BASE).preset
    value: Any = base
    for part in leaf.key.split("."):
        value = getattr(value, part, None)
    try:
        changed = with_value(leaf.key, different(leaf.key, value, leaf))
    except LlmtuiError:
        return  # refused when read
    if unsupported(changed):
        return  # refused until a later version
    assert changed != base
    assert everything(changed, "cuda", (9, 0)) != everything(base, "cuda", (9, 0)), f"{leaf.key} is ignored"


def arguments(text: str, **more: Any) -> dict[str, Any]:
    preset = parse_preset(text).preset
    return training_arguments(preset, output="x", precision=Precision("float32", None), evaluate=True, device="cpu",
                              total_steps=100, **more)  # fmt: skip


def test_the_published_recipe_becomes_todays_arguments() -> None:
    from llmtui.core.preset import load_preset
    from llmtui.core.worker.arguments import lora_config, quantization_config

    preset = load_preset("opencalm-7b-dolly-ja").preset
    got = arguments_of(preset)
    assert {k: got[k] for k in ("learning_rate", "num_train_epochs", "per_device_train_batch_size", "save_steps",
                                "eval_steps", "seed", "lr_scheduler_type", "weight_decay", "max_steps")} == {
        "learning_rate": 3e-4, "num_train_epochs": 3.0, "per_device_train_batch_size": 8, "save_steps": 200,
        "eval_steps": 200, "seed": 42, "lr_scheduler_type": "linear", "weight_decay": 0.0, "max_steps": -1,
    }  # fmt: skip
    lora = lora_config(preset)
    assert (lora["r"], lora["lora_alpha"], lora["lora_dropout"], lora["bias"]) == (8, 16, 0.05, "none")
    assert lora["target_modules"] == ["query_key_value"]
    assert quantization_config(preset, Precision("bfloat16", "bfloat16")) == {"load_in_8bit": True}


def arguments_of(preset: Preset) -> dict[str, Any]:
    return training_arguments(preset, output="x", precision=Precision("bfloat16", "bfloat16"), evaluate=True,
                              device="cuda", total_steps=4881)  # fmt: skip


def test_the_arguments_are_accepted_by_the_installed_trainer() -> None:
    from transformers import TrainingArguments

    got = TrainingArguments(**arguments(BASE))
    assert got.report_to == []
    assert (got.save_total_limit, got.logging_nan_inf_filter, got.push_to_hub) == (None, False, False)


def test_warm_up_is_a_share_below_one_and_steps_from_one_on() -> None:
    for value, expected in ((0, 0), (0.05, 5), (0.051, 6), (1, 1), (30, 30)):
        assert warmup_steps(with_value("training.warmup_steps", value), 100) == expected


def test_nf4_multiplies_in_the_models_type_unless_told_otherwise() -> None:
    from llmtui.core.worker.arguments import quantization_config

    preset = parse_preset(BASE).preset
    assert quantization_config(preset, Precision("bfloat16", "bfloat16"))["bnb_4bit_compute_dtype"] == "bfloat16"
    named = with_value("model.compute_dtype", "float16")
    assert quantization_config(named, Precision("bfloat16", "bfloat16"))["bnb_4bit_compute_dtype"] == "float16"
