"""An adapter merged into its base: same tokens, new folder, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from llmtui.core.errors import RefusedError, UsageError
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.worker import merge
from tests.core.worker.small import new_run, preset_text, work

LORA = "{r: 4, lora_alpha: 8, target_modules: all-linear}"


@pytest.fixture
def tuned(llama: Path, data: Path) -> RunDirectory:
    """A run trained on an nf4 base: the merge still goes into the unquantised one."""
    text = preset_text(llama, data, lora=LORA, max_steps=3).replace("dataset:", "  quantization: nf4\ndataset:", 1)
    directory = new_run(text)
    assert work(directory) == 0
    return directory


def test_the_merged_model_answers_as_base_and_adapter_do(
    tuned: RunDirectory, tmp_path: Path, llama: Path, monkeypatch, capsys
) -> None:
    from peft import PeftModel

    out = tmp_path / "deep" / "merged"
    monkeypatch.setattr("sys.argv", ["merge", str(tuned.path), str(out)])
    assert merge.main() == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["path"] == str(out)
    assert (answer["dtype"], answer["checked_prompts"], answer["notes"]) == ("float32", 3, [])
    merged = AutoModelForCausalLM.from_pretrained(out)
    together = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(llama), tuned.adapter)
    ids = AutoTokenizer.from_pretrained(out)("the cat sees", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        torch.testing.assert_close(merged(ids).logits, together(ids).logits, rtol=1e-4, atol=1e-4)
    assert "quantization_config" not in (out / "config.json").read_text()
    assert [p.name for p in out.parent.iterdir()] == ["merged"]


def test_a_folder_that_exists_is_refused_and_untouched(tuned: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(RefusedError, match="exists already"):
        merge.merge_run(tuned, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_merge_that_changes_answers_is_refused(tuned: RunDirectory, tmp_path: Path, monkeypatch) -> None:
    from peft.tuners.lora import LoraModel

    real = LoraModel.merge_and_unload

    def broken(self, *args, **kwargs):
        merged = real(self, *args, **kwargs)
        with torch.no_grad():
            for p in merged.parameters():
                p.add_(torch.randn_like(p))
        return merged

    monkeypatch.setattr(LoraModel, "merge_and_unload", broken)
    with pytest.raises(RefusedError, match="answers check prompt"):
        merge.merge_run(tuned, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_answer_that_rounding_decides_is_noted_not_refused() -> None:
    old, new = torch.tensor([[1.0, 5.0, 5.01]]), torch.tensor([[1.0, 5.02, 5.0]])
    assert len(merge._compare([([2], old)], [([1], new)], "bfloat16")) == 1
    far = torch.tensor([[1.0, 9.0, 5.0]])
    with pytest.raises(RefusedError):
        merge._compare([([2], old)], [([1], far)], "bfloat16")


def test_a_run_without_an_adapter_says_what_it_has(llama: Path, data: Path, tmp_path: Path) -> None:
    directory = new_run(preset_text(llama, data, max_steps=1))
    with pytest.raises(UsageError, match="no result yet"):
        merge.merge_run(directory, tmp_path / "out")
    assert work(directory) == 0
    with pytest.raises(UsageError, match="a whole model already"):
        merge.merge_run(directory, tmp_path / "out")
