"""Where a model comes from: folders, runs, adapters, GGUF files; what is wrong with one is a sentence with a cure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from llmtui.core.cached import cached_folder, write_folder
from llmtui.core.errors import DataError, MachineError
from llmtui.core.runs import events as ev
from llmtui.core.worker.cached import keep_model
from llmtui.core.worker.downloading import wanted_files
from llmtui.core.worker.failures import hub_error
from llmtui.core.worker.loading import choose_device
from llmtui.core.worker.locate import locate
from tests.core.worker.small import curve, error_of, new_run, of, preset_text, work

LORA = "{r: 4, lora_alpha: 8, target_modules: [q_proj, v_proj]}"


def test_a_missing_folder_is_named_with_the_nearest_one(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(f"{llama}x", data))
    assert work(directory) == 2
    error = error_of(directory)
    assert (error.kind, error.place) == ("data", "model.name_or_path")
    assert error.message == f"there is no folder {llama}x"
    assert error.hint == f"did you mean {llama}?"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/nowhere/at/all", "there is no folder /nowhere/at/all"),
        ("./nope", "there is no folder"),
        ("a/b/c", "there is no folder"),
        ("~/llmtui-nope", "there is no folder"),
        ("nope.gguf", "there is no file"),
        ("run:nope", "there is no run nope"),
    ],
)
def test_what_is_not_there_is_said_plainly(name: str, message: str, tmp_path: Path, llmtui_home: Path) -> None:
    with pytest.raises(DataError, match=message) as caught:
        locate(name, tmp_path)
    assert caught.value.hint


def test_folders_that_hold_no_model_say_what_is_missing(tmp_path: Path, llama: Path) -> None:
    with pytest.raises(DataError, match="holds no model"):
        locate(str(tmp_path), tmp_path)
    (tmp_path / "x.gguf").touch()
    with pytest.raises(DataError) as caught:
        locate(str(tmp_path), tmp_path)
    assert "x.gguf" in caught.value.hint
    shutil.copy(llama / "config.json", tmp_path)
    with pytest.raises(DataError, match="config but no weights"):
        locate(str(tmp_path), tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        locate(str(tmp_path), tmp_path)


def test_a_lora_target_the_model_does_not_have_is_refused_even_beside_right_ones(llama: Path, data: Path) -> None:
    directory = new_run(preset_text(llama, data, lora="{r: 4, target_modules: [q_proj, v_projj, query_key_value]}"))
    assert work(directory) == 2
    error = error_of(directory)
    assert error.place == "lora.target_modules"
    assert error.message == "the model has no layer named v_projj, query_key_value"
    assert "did you mean v_proj" in error.hint
    assert "down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj" in error.hint
    assert not of(directory, ev.Step)


def test_all_linear_and_longer_names_are_accepted(llama: Path, data: Path) -> None:
    for targets in ("all-linear", "[self_attn.q_proj]"):
        directory = new_run(preset_text(llama, data, lora=f"{{r: 4, target_modules: {targets}}}", max_steps=1))
        assert work(directory) == 0
        assert of(directory, ev.Plan)[0].trainable_parameters > 0


def test_a_run_goes_on_from_the_latest_finished_run_of_a_preset(llama: Path, data: Path) -> None:
    first = new_run(preset_text(llama, data, max_steps=2), "demo")
    assert work(first) == 0
    new_run(preset_text(llama, data), "demo")  # a later one without a result
    for text in (preset_text("run:demo", data, max_steps=1), preset_text("run:demo", data, lora=LORA, max_steps=1)):
        child = new_run(text, "child")
        assert work(child) == 0
        assert any(first.id in note for note in of(child, ev.Plan)[0].notes)
        assert of(child, ev.Step)[0].loss < of(first, ev.Step)[0].loss
    base = child.path / "base"
    assert (base / "model.safetensors").stat().st_ino == (first.model / "model.safetensors").stat().st_ino
    assert json.loads((child.adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == str(base)


def test_a_resumed_run_keeps_its_base_when_a_newer_run_of_that_preset_has_finished(llama: Path, data: Path) -> None:
    assert work(new_run(preset_text(llama, data, max_steps=2), "demo")) == 0
    text = preset_text("run:demo", data, lora=LORA, more="checkpoints: {save_steps: 2}")
    whole, child = new_run(text, "whole"), new_run(text, "child")
    assert [work(whole), work(child)] == [0, 0]
    assert work(new_run(preset_text(llama, data, max_steps=4, seed=99), "demo")) == 0
    assert work(child, checkpoint="checkpoints/checkpoint-2", from_step=2) == 0
    assert curve(child) == curve(whole)


def test_training_goes_on_from_an_adapter_by_merging_it_once(llama: Path, data: Path, llmtui_home: Path) -> None:
    from peft import PeftModel

    first = new_run(preset_text(llama, data, lora=LORA), "tuned")
    assert work(first) == 0
    second = new_run(preset_text("run:tuned", data, lora=LORA, max_steps=2), "more")
    assert work(second) == 0
    assert any("merged into its base" in note for note in of(second, ev.Plan)[0].notes)
    assert of(second, ev.Step)[0].loss < of(first, ev.Step)[0].loss
    (kept,) = (llmtui_home / "cache").glob("merged-*")
    third = new_run(preset_text("run:tuned", data, lora=LORA, max_steps=1), "again")
    assert work(third) == 0
    assert [*(llmtui_home / "cache").glob("merged-*")] == [kept]
    shutil.rmtree(llmtui_home / "cache")  # it may be deleted at any time: the adapter stays usable
    base = json.loads((second.adapter / "adapter_config.json").read_text())["base_model_name_or_path"]
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), second.adapter)


def test_a_run_without_a_result_says_how_to_get_one(llama: Path, data: Path) -> None:
    unfinished = new_run(preset_text(llama, data), "tuned")
    child = new_run(preset_text("run:tuned", data), "child")
    assert work(child) == 2
    assert error_of(child).message == f"run {unfinished.id} has no result yet"
    assert "llmtui resume" in error_of(child).hint


def test_a_checkpoint_of_a_run_can_be_the_base(llama: Path, data: Path) -> None:
    first = new_run(preset_text(llama, data, more="checkpoints: {save_steps: 2}"), "tuned")
    assert work(first) == 0
    child = new_run(preset_text("run:tuned@4", data, lora=LORA, max_steps=1), "child")
    assert work(child) == 0
    kept = {p.name for p in (child.path / "base").iterdir()}
    assert "model.safetensors" in kept
    assert not kept & {"optimizer.pt", "rng_state.pth", "manifest.json"}


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path, llama: Path, data: Path) -> None:
    """Weights without safetensors are read as tensors and nothing else."""
    folder, canary = tmp_path / "evil", tmp_path / "canary"
    shutil.copytree(llama, folder, ignore=shutil.ignore_patterns("*.safetensors"))

    class Evil:
        def __reduce__(self):
            return (Path.touch, (canary,))

    torch.save({"model.embed_tokens.weight": Evil()}, folder / "pytorch_model.bin")
    directory = new_run(preset_text(folder, data))
    assert work(directory) == 2
    assert not canary.exists()


def test_weights_of_an_older_kind_are_read_as_tensors(tmp_path: Path, llama: Path, data: Path) -> None:
    folder = tmp_path / "older"
    shutil.copytree(llama, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    torch.save(AutoModelForCausalLM.from_pretrained(llama).state_dict(), folder / "pytorch_model.bin")
    directory = new_run(preset_text(folder, data, max_steps=1))
    assert work(directory) == 0, error_of(directory)


def test_a_tokenizer_without_pad_token_pads_with_another_and_says_so(tmp_path: Path, llama: Path, data: Path) -> None:
    folder = tmp_path / "padless"
    shutil.copytree(llama, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("pad_token")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with_pad = new_run(preset_text(llama, data, max_steps=2), "with")
    without = new_run(preset_text(folder, data, max_steps=2), "without")
    assert [work(with_pad), work(without)] == [0, 0]
    assert curve(without) == curve(with_pad)
    assert any("no pad token" in note for note in of(without, ev.Plan)[0].notes)


def test_no_gpu_is_a_note_when_any_will_do_and_an_error_when_one_is_named(llama: Path, data: Path) -> None:
    from llmtui.core.preset import parse_preset

    text = preset_text(llama, data)
    automatic = parse_preset(text.replace("gpus: none", "gpus: auto")).preset
    named = parse_preset(text.replace("gpus: none", "gpus: [0]")).preset
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert choose_device(automatic) == (torch.device("cpu"), ["there is no GPU here; training runs on the CPU"])
    with pytest.raises(MachineError, match="torch sees no GPU"):
        choose_device(named)


def test_of_a_repository_only_what_is_read_is_downloaded() -> None:
    files = ["config.json", "model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json", "README.md",
             "pytorch_model.bin", "original/consolidated.00.pth", "consolidated.safetensors", "tokenizer.model",
             "tokenizer.json", "modeling_x.py", "onnx/model.onnx", "chat_template.jinja", "x.gguf"]  # fmt: skip
    wanted = wanted_files(files, code=False)
    assert wanted == ["chat_template.jinja", "config.json", "model-1.safetensors", "model-2.safetensors",
                      "model.safetensors.index.json", "tokenizer.json", "tokenizer.model"]  # fmt: skip
    assert "modeling_x.py" in wanted_files(files, code=True)
    assert "pytorch_model.bin" in wanted_files([f for f in files if not f.endswith("safetensors")], code=False)


class GatedRepoError(Exception): ...


class RepositoryNotFoundError(Exception): ...


class LocalEntryNotFoundError(Exception): ...


@pytest.mark.parametrize(
    ("cause", "kind", "message", "cure"),
    [
        (GatedRepoError("401"), MachineError, "access to a/b is gated", "HF_TOKEN"),
        (RepositoryNotFoundError("404"), DataError, "no hub model a/b", "check the name"),
        (LocalEntryNotFoundError("x"), MachineError, "the hub cannot be reached for a/b", "check the network"),
        (ImportError("requires the SentencePiece library"), MachineError, "needs the package sentencepiece", "pip"),
        (ValueError("tiktoken is required"), MachineError, "needs the package protobuf", "pip install protobuf"),
        (ValueError("set trust_remote_code=True"), DataError, "needs Python code of its own", "read that code"),
        (KeyError("strange"), DataError, "a/b cannot be loaded: OSError", "llmtui logs"),
    ],
)
def test_the_first_cause_is_named_however_deep_it_is_wrapped(cause, kind, message: str, cure: str) -> None:
    try:
        try:
            raise cause
        except Exception as inner:
            raise OSError("We couldn't load it") from inner
    except OSError as outer:
        error = hub_error("a/b", outer)
    assert isinstance(error, kind)
    assert message in error.message
    assert cure in error.hint


def test_a_cached_folder_is_made_once_and_whole_or_not_at_all(llmtui_home: Path) -> None:
    made = []

    def half(folder: Path) -> None:
        (folder / "a").touch()
        raise RuntimeError("killed")

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "a").touch()

    with pytest.raises(RuntimeError):
        cached_folder("thing", half)
    assert not (llmtui_home / "cache" / "thing").exists()
    first = cached_folder("thing", make)
    assert cached_folder("thing", make) == first
    assert len(made) == 1
    assert not [p for p in first.parent.iterdir() if p.name.endswith(".tmp")]


def test_a_folder_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError):
        write_folder(tmp_path / "there", lambda folder: None)
    assert [p.name for p in tmp_path.iterdir()] == ["there"]


def test_a_kept_model_survives_the_one_it_was_kept_from(tmp_path: Path, llama: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(llama, source)
    keep_model(source, tmp_path / "kept")
    shutil.rmtree(source)
    AutoModelForCausalLM.from_pretrained(tmp_path / "kept")
    AutoTokenizer.from_pretrained(tmp_path / "kept")
