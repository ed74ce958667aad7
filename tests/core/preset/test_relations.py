"""Keys that contradict each other are refused, keys that would not be used too; harmless mismatches are put right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset import parse_preset, resolve, unsupported, value_of

MODEL = "model: {name_or_path: org/model}\n"
DATA = "dataset: {name_or_path: rows.jsonl, val_size: 10}\n"


def problems(text: str) -> list[Problem]:
    with pytest.raises(PresetError) as caught:
        parse_preset(text, Path("my.yaml"))
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("checkpoints: {metric: accuracy}", "checkpoints.metric"),
        ("training: {early_stopping_patience: 2}", "training.early_stopping_patience"),
        ("training: {warmup_steps: 1.5}", "training.warmup_steps"),
        ("training: {warmup_steps: 10, lr_scheduler_type: constant}", "training.warmup_steps"),
        ("training: {warmup_steps: 10, max_steps: 5}", "training.warmup_steps"),
        ("gpu_split: {gpus: [0, 1]}", "gpu_split.gpus"),
        ("gpu_split: {strategy: layers, gpus: none}", "gpu_split.gpus"),
        ("gpu_split: {processes: 2}", "gpu_split.processes"),
        ("gpu_split: {strategy: ddp, gpus: [0, 1], processes: 3}", "gpu_split.processes"),
        ("gpu_split: {max_memory: {0: 7GB}}", "gpu_split.max_memory"),
        ("gpu_split: {strategy: layers, gpus: [0, 1], max_memory: {0: 7GB, 2: 7GB}}", "gpu_split.max_memory"),
        ("limits: {on_hang: restart}", "limits.on_hang"),
        ("generation: {min_new_tokens: 65}", "generation.min_new_tokens"),
        ("generation: {temperature: 0.7}", "generation.temperature"),
        ("generation: {top_p: 0.9}", "generation.top_p"),
        ("generation: {top_k: 50}", "generation.top_k"),
        ("generation: {system: Be brief.}", "generation.system"),
        ("task: sweep", "sweep"),
        ("task: sweep\nsweep: {input_tokens: 100}", "sweep.output_tokens"),
    ],
)
def test_a_contradiction_is_refused_at_its_line(written: str, field: str) -> None:
    (problem,) = problems(MODEL + DATA + written + "\n")
    assert problem.field == field
    assert problem.line is not None and problem.line >= 3
    assert problem.cure


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("quantization: int8", "model.quantization"),
        ("compute_dtype: bf16", "model.compute_dtype"),
        ("double_quant: false", "model.double_quant"),
    ],
)
def test_how_weights_are_kept_fits_together(model: str, field: str) -> None:
    (problem,) = problems(f"model: {{name_or_path: org/model, {model}}}\n{DATA}")
    assert (problem.field, problem.line) == (field, 1)


@pytest.mark.parametrize("name", ["./folder", "/data/model.gguf", "run:demo", "~/llama"])
def test_a_revision_is_for_the_hub(name: str) -> None:
    (problem,) = problems(f"model: {{name_or_path: {name}, revision: main}}\n{DATA}")
    assert problem.field == "model.revision"


def test_without_validation_rows_nothing_can_be_judged() -> None:
    data = "dataset: {name_or_path: rows.jsonl}\n"
    for written, field in (
        ("checkpoints: {result: best}", "checkpoints.result"),
        ("training: {early_stopping_patience: 2, eval_steps: 5}", "training.early_stopping_patience"),
    ):
        (problem,) = problems(MODEL + data + written)
        assert problem.field == field
        assert "val_size" in problem.cure
    loaded = parse_preset(MODEL + data + "training: {eval_steps: 5}\n")
    assert loaded.preset.training.eval_steps is None
    assert "eval_steps" in loaded.warnings[0]


def test_nothing_is_concluded_from_a_key_that_is_wrong_itself() -> None:
    wrong_val = "dataset: {name_or_path: rows.jsonl, val_size: -1}\ncheckpoints: {result: best}\n"
    assert [p.field for p in problems(MODEL + wrong_val)] == ["dataset.val_size"]
    misspelt = "dataset: {name_or_path: rows.jsonl, val_sise: 10}\ncheckpoints: {result: best}\n"
    assert [p.field for p in problems(MODEL + misspelt)] == ["dataset.val_sise"]
    misplaced = "dataset: {name_or_path: rows.jsonl}\ncheckpoints: {result: best}\nval_size: 5\n"
    assert [p.field for p in problems(MODEL + misplaced)] == ["val_size"]


def test_a_contradiction_is_reported_together_with_other_mistakes() -> None:
    found = problems(MODEL + DATA + "generation: {top_k: 50}\ntraining: {sed: 1}\n")
    assert [(p.line, p.field) for p in found] == [(3, "generation.top_k"), (4, "training.sed")]


@pytest.mark.parametrize(
    ("written", "key", "value", "said"),
    [
        ("checkpoints: {result: best, save_steps: 3}\ntraining: {eval_steps: 2}", "checkpoints.save_steps", 4, "save_steps"),
        ("checkpoints: {result: best, save_steps: 1}\ntraining: {eval_steps: 20}", "checkpoints.save_steps", 20, "save_steps"),
        ("checkpoints: {result: best, save_steps: 30}", "training.eval_steps", 30, "eval_steps"),
        ("generation: {do_sample: true, temperature: 0, top_p: 0.5}", "generation.do_sample", False, "greedy"),
        ("training: {num_train_epochs: 2, max_steps: 9}", "training.max_steps", 9, "wins over"),
        ("lora:\n", "lora.r", None, "lora is empty"),
    ],
)  # fmt: skip
def test_a_harmless_mismatch_is_put_right_and_said_once(written: str, key: str, value: Any, said: str) -> None:
    loaded = parse_preset(f"{MODEL}{DATA}{written}\n")
    assert value_of(loaded, key) == value
    assert said in " ".join(loaded.warnings)
    again = parse_preset(resolve(loaded))
    assert value_of(again, key) == value
    assert all("wins over" in warning for warning in again.warnings), "what was put right needs no second sentence"


@pytest.mark.parametrize("written", ["temperature: 0", "temperature: '0.0'", "do_sample: true\n  temperature: '0.7'"])
def test_temperature_zero_is_greedy_and_text_is_a_number(written: str) -> None:
    generation = parse_preset(f"{MODEL}{DATA}generation:\n  {written}\n").preset.generation
    assert generation.do_sample == ("0.7" in written)
    assert generation.temperature == (0.7 if "0.7" in written else generation.temperature)


@pytest.mark.parametrize(
    "written",
    ["task: sweep\nsweep: {input_tokens: 100, output_tokens: 64}", "task: generate", "training: {packing: true}",
     "gpu_split: {strategy: ddp, processes: 2}", "notify: beep", "checkpoints: {mirror: /mnt/x}",
     "checkpoints: {on_full: stop}", "training: {recipe: fast}", "generation: {prompts: hello}", "sweep: {}",
     "gpu_split: {nodes: 2}", "gpu_split: {deepspeed_config: ds.json}", "gpu_split: {keep: per_device}"],
)  # fmt: skip
def test_what_a_later_version_runs_is_valid_and_refused_with_a_sentence(written: str) -> None:
    loaded = parse_preset(f"{MODEL}{DATA}{written}\n")
    (problem, *_) = unsupported(loaded.preset, "my.yaml", loaded.lines)
    assert problem.line == 3
    assert "later" in problem.problem or "yet" in problem.problem
    assert problem.cure


def test_what_comes_from_the_command_line_says_so() -> None:
    loaded = parse_preset(MODEL + DATA, Path("my.yaml"), ["training.packing=true"])
    assert [p.file for p in unsupported(loaded.preset, "my.yaml", loaded.lines)] == ["--set"]


@pytest.mark.parametrize(
    ("dataset", "field", "problem"),
    [
        ("name_or_path: rows.jsonl, val: val.jsonl, val_size: 0.1", "dataset.val_size", "dataset.val names other"),
        ("name_or_path: rows.jsonl, val: validation", "dataset.val", "is the name of a split"),
        ("sources: [{name_or_path: a/b}], val: validation", "dataset.val", "is the name of a split"),
        ("name_or_path: a/b, clean: {min_length: 5, max_length: 4}", "dataset.clean.max_length", "below min_length"),
    ],
)
def test_what_validates_and_what_is_cleaned_must_fit(dataset: str, field: str, problem: str) -> None:
    with pytest.raises(PresetError) as caught:
        parse_preset(f"{MODEL}dataset: {{{dataset}}}\n")
    (found,) = caught.value.problems
    assert found.field == field
    assert problem in found.problem
    assert found.cure


@pytest.mark.parametrize(
    "dataset",
    ["name_or_path: a/b, val: validation", "name_or_path: a/b, val: ./held", "name_or_path: rows.jsonl, val: x/held",
     "name_or_path: rows.jsonl, val: held.csv, clean: {min_length: 4, max_length: 4}",
     "name_or_path: rows.jsonl, label: {column: kind, names: {true: yes, false: no}}"],
)  # fmt: skip
def test_files_splits_and_labels_are_valid(dataset: str) -> None:
    loaded = parse_preset(f"{MODEL}dataset: {{{dataset}}}\n")
    assert unsupported(loaded.preset) == []


@pytest.mark.parametrize(
    ("names", "problem"),
    [("{0: neg, 0.5: ''}", "has no name for 0.5"), ("3", "names no labels"), ("[a, [b]]", "has no name for 1")],
)
def test_names_of_labels_are_texts(names: str, problem: str) -> None:
    with pytest.raises(PresetError, match=problem):
        parse_preset(f"{MODEL}dataset: {{name_or_path: a/b, label: {{column: kind, names: {names}}}}}\n")
