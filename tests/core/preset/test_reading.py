"""A preset's mistakes: all at once, each with line, field, value and cure, before anything heavy is imported."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset import parse_preset, unsupported

HEAD = "model: {name_or_path: ./llama}\ndataset: {name_or_path: rows.jsonl, val_size: 10}\n"


def problems(text: str, *sets: str) -> list[Problem]:
    with pytest.raises(PresetError) as caught:
        parse_preset(text, Path("my.yaml"), sets)
    return list(caught.value.problems)


def only(text: str, *sets: str) -> Problem:
    (problem,) = problems(text, *sets)
    return problem


def test_five_mistakes_are_reported_together_in_less_than_a_second() -> None:
    text = (
        "model:\n  name_or_path: ./llama\n  quantisation: int8\n  dtype: bf17\n"
        "dataset: {name_or_path: x.jsonl}\n"
        "training:\n  learning_rat: 3e-4\n  num_train_epochs: many\n  per_device_train_batch_size: 0\n"
    )
    begin = time.monotonic()
    found = problems(text)
    assert time.monotonic() - begin < 1
    assert [(p.line, p.field) for p in found] == [
        (3, "model.quantisation"), (4, "model.dtype"), (7, "training.learning_rat"),
        (8, "training.num_train_epochs"), (9, "training.per_device_train_batch_size"),
    ]  # fmt: skip
    assert all(p.cure and p.file == "my.yaml" for p in found)
    assert "did you mean quantization?" in found[0].cure
    assert "bf17" in str(found[1])


def test_a_check_imports_no_torch(tmp_path: Path) -> None:
    script = (
        "import sys; from llmtui.core.preset import load_preset; load_preset('demo')\n"
        "heavy = {'torch', 'transformers', 'datasets', 'textual', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)


@pytest.mark.parametrize(
    ("key", "cure"),
    [
        ("lora: {lora_ranl: 4}", "did you mean"),
        ("evaluation_strategy: steps", "training.eval_steps"),
        ("training: {warmup_ratio: 0.1}", "warmup_steps"),
        ("training: {lora_r: 8}", "lora.r"),
        ("training: {num-train-epochs: 3}", "num_train_epochs"),
        ("model: {name_or_path: x, load_in_4bit: true}", "nf4"),
        ("model: {name_or_path: x, load_in_8bit: true}", "int8"),
        ("dataset: {name_or_path: x, cutoff_len: 5}", "dataset.max_length"),
        ("lora: {targets: [q_proj]}", "lora.target_modules"),
        ("learning_rate: 1", "training.learning_rate"),
    ],
)
def test_old_foreign_and_misplaced_names_are_translated(key: str, cure: str) -> None:
    head = HEAD if not key.startswith(("model", "dataset")) else ""
    base = (
        "model: {name_or_path: x}\n"
        if key.startswith("dataset")
        else "dataset: {name_or_path: x}\n"
        if head == ""
        else ""
    )
    assert any(cure in p.cure for p in problems(head + base + key + "\n"))


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("training: {learning_rate: 3e-4}", "learning_rate", 3e-4),
        ("training: {learning_rate: '3e-4'}", "learning_rate", 3e-4),
        ("training: {learning_rate: 1}", "learning_rate", 1.0),
        ("training: {max_steps: 1e3}", "max_steps", 1000),
        ("training: {max_steps: '12'}", "max_steps", 12),
        ("training: {per_device_train_batch_size: '4'}", "per_device_train_batch_size", 4),
        ("training: {num_train_epochs: '2'}", "num_train_epochs", 2.0),
        ("training: {seed: 012}", "seed", 12),
        ("training: {max_steps: null}", "max_steps", None),
    ],
)
def test_numbers_are_read_as_people_write_them(written: str, field: str, value: object) -> None:
    assert getattr(parse_preset(HEAD + written).preset.training, field) == value


@pytest.mark.parametrize(
    "written",
    ["training: {max_steps: 1.5}", "training: {max_steps: true}", "training: {learning_rate: yes please}",
     "training: {learning_rate: .nan}", "training: {learning_rate: .inf}", "training: {seed: 1:30}", "lora: {r: 0}",
     "lora: {lora_dropout: 1}", "training: {on_nan: no}", "model: {name_or_path: ''}"],
)  # fmt: skip
def test_values_that_cannot_be_meant_are_refused_with_their_line(written: str) -> None:
    text = (HEAD if not written.startswith("model") else "dataset: {name_or_path: x}\n") + written + "\n"
    problem = problems(text)[0]
    assert problem.line == text.count("\n")
    assert problem.cure


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("2000", 2000),
        ("1", 1),
        ("0.2", 0.2),
        ("0", 0),
        ("0.0", 0),
        ("'0.1'", 0.1),
        ("1.0", None),
        ("1.5", None),
        ("-1", None),
    ],
)
def test_val_size_is_rows_or_a_share(value: str, meaning: float | None) -> None:
    text = f"model: {{name_or_path: x}}\ndataset: {{name_or_path: x, val_size: {value}}}\n"
    if meaning is None:
        assert only(text).field == "dataset.val_size"
    else:
        assert parse_preset(text).preset.dataset.val_size == meaning


@pytest.mark.parametrize(
    ("value", "meaning"),
    [("{0: 7GB}", {0: 7_000_000_000}), ("{0: 7GiB}", {0: 7 << 30}), ('{"0": 7000MiB}', {0: 7000 << 20}),
     ("{GPU-abc: 5}", {"GPU-abc": 5}), ("{0: 10 gigs}", None), ("{cpu: 40KB}", None), ("{disk: 1GB}", None),
     ("[7]", None), ("{0: .inf}", None), ("{0: -5}", None), ("{0: true}", None), ("{cuda: 1GB}", None)],
)  # fmt: skip
def test_max_memory_has_units_and_no_offload(value: str, meaning: dict[object, int] | None) -> None:
    text = HEAD + f"gpu_split: {{strategy: layers, max_memory: {value}}}\n"
    if meaning is None:
        assert only(text).field == "gpu_split.max_memory"
    else:
        assert parse_preset(text).preset.gpu_split.max_memory == meaning


def test_a_key_that_stands_twice_names_both_lines() -> None:
    problem = only(HEAD + "training:\n  seed: 1\n  learning_rate: 1\n  seed: 2\n")
    assert (problem.line, problem.field, "line 4" in problem.problem) == (6, "training.seed", True)


@pytest.mark.parametrize(
    ("text", "line"),
    [("model:\n\tname_or_path: x\n", 2), ("", 1), ("[1, 2]\n", 1), ("model: [\n", 1), ("just words\n", 1)],
)
def test_what_is_no_preset_says_where(text: str, line: int) -> None:
    assert only(text).line == line


def test_yaml_that_would_run_code_is_only_text_or_refused() -> None:
    with pytest.raises(PresetError):
        parse_preset("model: {name_or_path: !!python/object/apply:os.system ['touch x']}\n")


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert parse_preset("\ufeff" + HEAD).preset.model.name_or_path == "./llama"


def test_a_token_is_refused_wherever_it_stands() -> None:
    found = problems(HEAD + "description: use hf_abcdefghijklmnopqrstuvwxyz\n")
    assert "token" in found[0].problem
    assert "hf_abc" not in str(found[0])


def test_sets_win_and_their_mistakes_are_named() -> None:
    loaded = parse_preset(HEAD, None, ["training.learning_rate=1e-4", "lora.r=4", "model.name_or_path=run:demo"])
    assert loaded.preset.training.learning_rate == 1e-4
    assert loaded.preset.lora is not None
    assert loaded.preset.lora.r == 4
    assert loaded.preset.model.name_or_path == "run:demo"
    assert only(HEAD, "training.lerning_rate=1").file == "--set"
    assert only(HEAD, "nonsense").file == "--set"
    assert only(HEAD, "training.learning_rate=1e-4,3e-4").file == "--set"


def test_contradictions_are_refused_and_harmless_mismatches_said() -> None:
    assert only(HEAD + "model2: 1\n").field == "model2"
    nothing = "model: {name_or_path: x}\ndataset: {name_or_path: x}\n"
    assert only(nothing + "checkpoints: {result: best}\n").field == "checkpoints.result"
    assert only(nothing + "training: {early_stopping_patience: 2}\n").field == "training.early_stopping_patience"
    assert "quantised" in only(HEAD.replace("./llama}", "./llama, quantization: int8}")).problem
    assert only(HEAD + "gpu_split: {gpus: [0, 1]}\n").field == "gpu_split.gpus"
    loaded = parse_preset(HEAD + "checkpoints: {result: best, save_steps: 3}\ntraining: {eval_steps: 2}\n")
    assert loaded.preset.checkpoints.save_steps % 2 == 0
    assert any("save_steps" in w for w in loaded.warnings)
    loaded = parse_preset(HEAD + "training: {max_steps: 5, num_train_epochs: 2}\n")
    assert any("wins" in w for w in loaded.warnings)
    loaded = parse_preset(HEAD + "generation: {do_sample: true, temperature: 0}\n")
    assert not loaded.preset.generation.do_sample


@pytest.mark.parametrize(
    "written",
    ["task: sweep\nsweep: {input_tokens: 100, output_tokens: 64}", "task: generate",
     "training: {packing: true}", "gpu_split: {strategy: ddp, processes: 2}", "notify: beep",
     "checkpoints: {mirror: {path: /mnt/x}}", "checkpoints: {on_full: stop}", "training: {recipe: fast}"],
)  # fmt: skip
def test_what_a_later_version_runs_is_valid_and_refused_with_a_sentence(written: str) -> None:
    loaded = parse_preset(HEAD + written + "\n")
    (problem, *_) = unsupported(loaded.preset, "my.yaml", loaded.lines)
    assert problem.line == 3
    assert problem.cure


def test_target_modules_are_a_list_however_written() -> None:
    for written in ("[q_proj, v_proj]", "q_proj,v_proj", "'q_proj, v_proj'"):
        lora = parse_preset(HEAD + f"lora:\n  target_modules: {written}\n").preset.lora
        assert lora is not None
        assert lora.target_modules == ["q_proj", "v_proj"]
