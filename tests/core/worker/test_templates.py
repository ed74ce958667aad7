"""Templates through a whole run: what was trained with is saved with the result and asks the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from tests.core.data.conftest import sentencepiece_folder
from tests.core.worker.small import error_of, make_model, new_run, of, preset_text, work

LORA = "{r: 4, target_modules: all-linear}"


def run_with(template: str, model: Path, data: Path, max_length: int = 128, **keys: Any) -> RunDirectory:
    added = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in keys.items())
    text = preset_text(model, data, lora=LORA, max_steps=2, eval_steps=2, sample_prompts=["who sees"])
    text = text.replace("max_length: 128", f"max_length: {max_length}")
    return new_run(text.replace("  template: rinna\n", f"  template: {template}\n{added}"))


def test_a_chat_template_chosen_by_name_is_saved_and_trains_on_by_itself(
    tmp_path: Path, llama: Path, data: Path
) -> None:
    from transformers import AutoTokenizer

    directory = run_with("chat:chatml", llama, data, train_on="response")
    assert work(directory) == 0
    saved = AutoTokenizer.from_pretrained(directory.adapter)
    asked = saved.apply_chat_template([{"role": "user", "content": "who"}], tokenize=False, add_generation_prompt=True)
    assert asked == "<|im_start|>user\nwho<|im_end|>\n<|im_start|>assistant\n"
    again = run_with("chat", Path(f"run:{directory.id}"), data)
    assert work(again) == 0


def test_a_model_without_a_chat_template_is_refused_before_its_weights(llama: Path, data: Path) -> None:  # B4
    directory = run_with("chat", llama, data)
    assert work(directory) == 2
    error = error_of(directory)
    assert "no chat template" in error.message
    assert "chat:chatml" in error.hint
    assert not of(directory, ev.Memory)


def test_a_template_of_ones_own_is_trained_and_asked_with(tmp_path: Path, llama: Path, data: Path) -> None:
    own = tmp_path / "own.jinja"
    own.write_text("Q: {{ instruction }}\nA: {{ output }}\n")
    assert work(run_with(str(own), llama, data, on_long="split", max_length=12)) == 0
    own.write_text("Q: {{ instruction }}\n\nA: {{ outptu }}\n")
    broken = run_with(str(own), llama, data)
    assert work(broken) == 2
    assert error_of(broken).place == f"{own}:3"


def test_a_sentencepiece_model_alone_is_read_as_it_reads_itself(tmp_path: Path, data: Path) -> None:  # B5
    from sentencepiece import SentencePieceProcessor
    from transformers import AutoTokenizer

    folder = make_model(tmp_path / "model", "neox")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    config = (folder / "config.json").read_text()
    sentencepiece_folder(folder, vocab_size=300, byte_fallback=False)
    (folder / "config.json").write_text(config)
    directory = run_with("rinna", folder, data)
    assert work(directory) == 0
    saved = AutoTokenizer.from_pretrained(directory.adapter)
    model = SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    text = "### 指示:<NL>質問<NL><NL>### 回答:<NL>答え"
    assert saved(text, add_special_tokens=False)["input_ids"] == model.encode(text)


@pytest.mark.parametrize("template", ["rinna", "alpaca"])
def test_more_tokens_than_positions_are_refused_with_both_numbers(template: str, llama: Path, data: Path) -> None:
    directory = run_with(template, llama, data, max_length=129)
    assert work(directory) == 2
    assert "129 and the model has 128" in error_of(directory).message
