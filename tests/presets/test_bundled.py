"""Every bundled preset is valid, finds its files, and holds the recipe that its description names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from llmtui.core.preset import Preset, load_preset, parse_preset, resolve, resolved_preset, unsupported, value_of
from llmtui.core.preset.library import bundled_folder

NAMES: Final = {
    "demo", "demo-lora-int8", "llama-3.1-8b-zero2", "opencalm-7b-dolly-ja", "rinna-3.6b-dolly-ja",
    "rinna-3.6b-sweep-1gpu", "rinna-3.6b-sweep-2gpu", "smollm2-135m",
}  # fmt: skip
LATER: Final = {"llama-3.1-8b-zero2", "rinna-3.6b-sweep-1gpu", "rinna-3.6b-sweep-2gpu"}

_DOLLY: Final = {
    "task": "finetune", "model.quantization": "int8", "dataset.name_or_path": "kunishou/databricks-dolly-15k-ja",
    "dataset.train_on": "everything", "dataset.val_size": 2000, "dataset.max_length": 256, "dataset.on_long": "cut",
    "dataset.shuffle": False, "lora.r": 8, "lora.lora_alpha": 16, "lora.lora_dropout": 0.05, "lora.bias": "none",
    "lora.target_modules": ["query_key_value"], "training.num_train_epochs": 3, "training.max_steps": None,
    "training.learning_rate": 3e-4, "training.lr_scheduler_type": "linear", "training.warmup_steps": 0,
    "training.weight_decay": 0, "training.max_grad_norm": 1, "training.per_device_train_batch_size": 8,
    "training.gradient_accumulation_steps": 1, "training.auto_batch_size": True, "training.eval_steps": 200,
    "training.logging_steps": 20, "training.seed": 42, "checkpoints.save_steps": 200,
    "checkpoints.save_total_limit": 3, "gpu_split.strategy": "single",
}  # fmt: skip
_SWEEP: Final = {
    "task": "sweep", "model.name_or_path": "rinna/japanese-gpt-neox-3.6b-instruction-ppo",
    "model.quantization": "nf4", "model.double_quant": True, "model.compute_dtype": "bfloat16",
    "sweep.input_tokens": [100, 500, 1000], "sweep.output_tokens": [64, 128, 256], "gpu_split.strategy": "layers",
}  # fmt: skip
RECIPES: Final[dict[str, dict[str, Any]]] = {
    "opencalm-7b-dolly-ja": {
        **_DOLLY, "model.name_or_path": "cyberagent/open-calm-7b", "dataset.template": "alpaca",
    },
    "rinna-3.6b-dolly-ja": {
        **_DOLLY, "model.name_or_path": "rinna/japanese-gpt-neox-3.6b", "dataset.template": "rinna",
    },
    "llama-3.1-8b-zero2": {
        "model.name_or_path": "meta-llama/Llama-3.1-8B", "model.quantization": "none", "model.dtype": "auto",
        "lora": None, "gpu_split.strategy": "zero2", "gpu_split.processes": 2, "gpu_split.gpus": [0, 1],
        "training.per_device_train_batch_size": 4, "training.per_device_eval_batch_size": 4,
        "training.gradient_accumulation_steps": 2, "training.num_train_epochs": 3, "dataset.val_size": 0.2,
        "dataset.max_length": 4096,
    },
    "rinna-3.6b-sweep-1gpu": {
        **_SWEEP, "gpu_split.gpus": [0], "gpu_split.max_memory": {0: 7_000_000_000},
    },
    "rinna-3.6b-sweep-2gpu": {
        **_SWEEP, "gpu_split.gpus": [0, 1], "gpu_split.max_memory": {0: 7_000_000_000, 1: 7_000_000_000},
    },
    "smollm2-135m": {
        "model.name_or_path": "HuggingFaceTB/SmolLM2-135M-Instruct", "lora.target_modules": "all-linear",
        "dataset.template": "chat",
    },
    "demo-lora-int8": {"model.name_or_path": "run:demo", "model.quantization": "int8"},
    "demo": {"lora": None, "model.quantization": "none"},
}  # fmt: skip


def files() -> list[Path]:
    return sorted(bundled_folder().glob("*.yaml"))


def test_what_is_promised_is_bundled() -> None:
    assert {path.stem for path in files()} == NAMES


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_bundled_preset_is_valid_and_says_nothing_that_needs_an_answer(path: Path) -> None:
    loaded = load_preset(str(path))
    assert len(loaded.preset.description) > 40
    assert loaded.warnings == ()
    assert bool(unsupported(loaded.preset)) == (path.stem in LATER)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_what_a_run_keeps_of_it_reads_back_as_the_same_preset_from_anywhere(path: Path, tmp_path: Path) -> None:
    loaded = load_preset(str(path))
    kept = tmp_path / "preset.yaml"
    kept.write_text(resolve(loaded), encoding="utf-8")
    again = load_preset(str(kept))
    assert again.preset == resolved_preset(loaded)
    assert resolve(again) == kept.read_text(encoding="utf-8")
    assert again.warnings == ()


@pytest.mark.parametrize(("name", "recipe"), RECIPES.items())
def test_the_recipe_is_the_one_that_is_named(name: str, recipe: dict[str, Any]) -> None:
    loaded = load_preset(name)
    assert {key: value_of(loaded, key) for key in recipe} == recipe


@pytest.mark.parametrize("name", ["demo", "demo-lora-int8", "smollm2-135m"])
def test_the_files_it_names_are_bundled_with_it(name: str) -> None:
    preset: Preset = resolved_preset(load_preset(name))
    assert preset.dataset.name_or_path is not None
    assert Path(preset.dataset.name_or_path).is_file()
    model = preset.model.name_or_path
    assert not model.startswith("/") or (Path(model) / "config.json").is_file()


@pytest.mark.parametrize("name", ["demo", "demo-lora-int8"])
def test_the_demo_asks_ten_things_that_have_an_answer(name: str) -> None:
    import json

    data = bundled_folder() / "demo" / "data"
    asked = load_preset(name).preset.training.sample_prompts
    known = {
        json.loads(line)["prompt"]
        for file in ("questions.jsonl", "questions-more.jsonl")
        for line in (data / file).read_text(encoding="utf-8").splitlines()
    }
    assert len(set(asked)) >= 10
    assert set(asked) <= known


def test_two_cards_of_four_rows_twice_make_sixteen() -> None:
    """The article behind this recipe writes a train_batch_size of 8, which fits one card only."""
    preset = load_preset("llama-3.1-8b-zero2").preset
    rows = preset.training.per_device_train_batch_size * preset.training.gradient_accumulation_steps
    assert rows * (preset.gpu_split.processes or 1) == 16


def test_seven_gigabytes_are_what_the_article_gave_to_accelerate() -> None:
    text = (bundled_folder() / "rinna-3.6b-sweep-2gpu.yaml").read_text(encoding="utf-8")
    assert "7GB" in text
    assert parse_preset(text).preset.gpu_split.max_memory[1] == 7 * 10**9
