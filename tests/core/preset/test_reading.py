"""A preset's mistakes: all at once, each with line, field, value and cure, before anything heavy is imported."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtui.core.errors import PresetError, Problem
from llmtui.core.preset import parse_preset, resolve, resolved_preset, value_of

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
        ("10%", 0.1),
        ("100%", None),
        ("true", None),
        ("many", None),
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


TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyzabcdefgh"


@pytest.mark.parametrize(
    "written",
    [f"description: use {TOKEN}", f"# {TOKEN}", f"hub: {{token: {TOKEN}}}", f"{TOKEN}: 1", f"notify: [{TOKEN}",
     f"training: {{sample_prompts: [a, {TOKEN}]}}", f"hf_token: {TOKEN}"],
)  # fmt: skip
def test_a_token_is_refused_wherever_it_stands_and_never_shown(written: str) -> None:
    found = problems(f"{HEAD}{written}\n")
    assert any("token" in p.problem and p.line == 3 and "HF_TOKEN" in p.cure for p in found)
    assert TOKEN[:12] not in repr(found)


def test_a_token_on_the_command_line_is_refused_and_words_are_no_token() -> None:
    assert any("token" in p.problem for p in problems(HEAD, f"description={TOKEN}"))
    parse_preset(HEAD + "description: hf_internal_testing_tiny_random_llama and mask-based sk-learn-contrib-models\n")


def test_sets_win_and_their_mistakes_are_named() -> None:
    loaded = parse_preset(HEAD, None, ["training.learning_rate=1e-4", "lora.r=4", "model.name_or_path=run:demo"])
    assert loaded.preset.training.learning_rate == 1e-4
    assert loaded.preset.lora is not None
    assert loaded.preset.lora.r == 4
    assert loaded.preset.model.name_or_path == "run:demo"
    assert only(HEAD, "training.lerning_rate=1").file == "--set"
    assert only(HEAD, "nonsense").file == "--set"
    assert only(HEAD, "training.learning_rate=1e-4,3e-4").file == "--set"


def test_target_modules_are_a_list_however_written() -> None:
    for written in ("[q_proj, v_proj]", "q_proj,v_proj", "'q_proj, v_proj'"):
        lora = parse_preset(HEAD + f"lora:\n  target_modules: {written}\n").preset.lora
        assert lora is not None
        assert lora.target_modules == ["q_proj", "v_proj"]


def test_every_kind_of_mistake_is_reported_together() -> None:
    text = (
        "model: {name_or_path: ./llama, dtype: bf17}\ndataset: {name_or_path: x.jsonl, val_size: 5}\n"
        "training:\n  seed: 1\n  learning_rat: 3e-4\n  seed: 2\ngeneration: {top_p: 0.5}\nlora: 8\n"
    )
    assert [(p.line, p.field) for p in problems(text)] == [
        (1, "model.dtype"), (5, "training.learning_rat"), (6, "training.seed"), (7, "generation.top_p"), (8, "lora"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "cure"),
    [
        ("model: ./llama", "write model: {name_or_path: ./llama}"),
        ("dataset: alpaca_zh", "write dataset: {name_or_path: alpaca_zh}"),
        ("lora: true", "write lora: {} for the defaults"),
        ("lora: false", "remove the section: without it all weights are trained"),
        ("gpu_split: '8,8'", "write gpu_split: {gpus: …}"),
        ("training.learning_rate: 1e-4", "write it inside its section: training: {learning_rate: …}"),
        ("training: {max_steps: -1}", "use a value ≥ 1, or null"),
        ("training: {eval_steps: 0}", "use a value ≥ 1, or null"),
        ("checkpoints: {save_total_limit: 0}", "use a value ≥ 1"),
        ("training: {seed: null}", "write a whole number, or remove the key for its default"),
        ("training: {seed: 4294967296}", "use a value ≤ 4294967295"),
        ("gpu_split: {gpus: cpu}", "write none for the CPU"),
        ("gpu_split: {gpus: cuda:0}", "use an index such as 0, or a UUID such as GPU-…"),
        ("training: {recipe: fsat}", "did you mean fast? (trainer, fast)"),
        ("generation: {max_new_tokens: 0}", "use a value ≥ 1"),
        ("training: {sample_prompts: ['']}", "write something to answer, or remove it"),
        ("lora_ranl: 4", "did you mean lora.r?"),
        ("pad_token: None", "remove it; this is chosen by itself"),
    ],
)  # fmt: skip
def test_the_cure_is_what_was_probably_meant(written: str, cure: str) -> None:
    key = written.partition(":")[0]
    head = "".join(row for row in HEAD.splitlines(keepends=True) if not row.startswith(f"{key}:"))
    assert [p.cure for p in problems(f"{head}{written}\n") if p.line == head.count("\n") + 1] == [cure]


@pytest.mark.parametrize(
    ("written", "meant"), [("8bit", "int8"), ("4bit", "nf4"), ("int9", "int8"), ("null", "none"), ("nf5", "nf4")]
)
def test_a_wrong_choice_gets_the_nearest_one(written: str, meant: str) -> None:
    text = f"model: {{name_or_path: x, quantization: {written}}}\ndataset: {{name_or_path: x}}\n"
    assert only(text).cure == f"did you mean {meant}? (none, int8, nf4)"


@pytest.mark.parametrize(("written", "dtype"), [("bf16", "bfloat16"), ("fp16", "float16"), ("fp32", "float32")])
def test_short_words_for_types_are_understood_and_written_out(written: str, dtype: str) -> None:
    loaded = parse_preset(f"model: {{name_or_path: x, dtype: {written}}}\ndataset: {{name_or_path: x}}\n")
    assert loaded.preset.model.dtype == dtype
    assert f"dtype: {dtype}" in resolve(loaded)


@pytest.mark.parametrize("written", ["0012345", "12345e7", "1_000", "0x10", "1.10", "true", "no", "2024-01-02", "1:30"])
def test_text_keeps_the_characters_of_the_file(written: str) -> None:
    text = (
        f"model: {{name_or_path: org/m, revision: {written}}}\n"
        f"dataset: {{name_or_path: org/d, columns: {{output: {written}}}}}\ndescription: {written}\n"
        f"training: {{sample_prompts: [{written}]}}\n"
    )
    loaded = parse_preset(text, None, ["dataset.config=" + written])
    preset = loaded.preset
    assert [preset.model.revision, preset.description, preset.dataset.config, *preset.training.sample_prompts,
            preset.dataset.columns["output"]] == [written] * 5  # fmt: skip
    assert parse_preset(resolve(loaded)).preset == resolved_preset(loaded)


def test_a_section_whose_keys_are_all_commented_out_has_its_defaults() -> None:
    preset = parse_preset(HEAD + "training:\n  # seed: 1\ncheckpoints:\n").preset
    assert preset.training.seed == 42
    assert preset.checkpoints.save_total_limit == 3


def test_peft_names_may_be_short() -> None:
    lora = parse_preset(HEAD + "lora: {alpha: '16', dropout: 0.1}\n").preset.lora
    assert lora is not None
    assert (lora.lora_alpha, lora.lora_dropout) == (16.0, 0.1)
    (problem,) = problems(HEAD + "lora:\n  r: 8\n  alpha: -1\n")
    assert (problem.line, problem.field) == (5, "lora.lora_alpha")
    (problem,) = problems(HEAD + "lora:\n  lora_alpha: 8\n  alpha: 8\n")
    assert "lora.lora_alpha" in problem.cure


@pytest.mark.parametrize(
    "text",
    ["a: &a [*a]", "a: &a {b: *a}", "x: " + "[" * 3000, "x: " + "{a: " * 300, "- " * 3000,
     "a: &a [1,1,1,1,1,1,1,1]\n" + "\n".join(f"{c}: &{c} [{','.join([f'*{p}'] * 8)}]" for p, c in
                                              zip("abcdefgh", "bcdefghi", strict=True)),
     "description: " + "x" * (1 << 20)],
    ids=["itself", "itself in a map", "brackets", "braces", "dashes", "laughs", "long"],
)  # fmt: skip
def test_a_file_made_to_hurt_is_refused_in_time(text: str) -> None:
    begin = time.process_time()
    assert problems(HEAD + text)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("written", "field"),
    [("training.learning_rate=1e-4,3e-4", "training.learning_rate"), ("lora.r=[8, 16]", "lora.r"),
     ("model.quantization=int8,nf4", "model.quantization"), ("model.name_or_path=[a, b]", "model.name_or_path")],
)  # fmt: skip
def test_a_grid_is_refused_until_it_can_be_queued(written: str, field: str) -> None:
    problem = only(HEAD, written)
    assert (problem.file, problem.field) == ("--set", field)
    assert "grids come" in problem.problem


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("description=a: b, c # d", "a: b, c # d"),
        ("description='quoted'", "quoted"),
        ("training.sample_prompts=Who, then?", ["Who, then?"]),
        ("training.sample_prompts=[a, b]", ["a", "b"]),
        ("gpu_split.gpus=0", [0]),
        ("gpu_split.gpus=none", "none"),
        ("training.max_steps=null", None),
        ("training.max_steps=", None),
        ("lora.target_modules=q_proj,v_proj", ["q_proj", "v_proj"]),
        ("dataset.columns={instruction: question}", {"instruction": "question"}),
        ("gpu_split.share=yes", True),
    ],
)
def test_set_takes_values_as_the_file_does(assignment: str, value: object) -> None:
    loaded = parse_preset(HEAD, None, [assignment])
    assert value_of(loaded, assignment.partition("=")[0]) == value


def test_set_can_remove_a_section_and_makes_missing_ones() -> None:
    text = HEAD + "lora: {r: 4}\n"
    assert parse_preset(text, None, ["lora=null"]).preset.lora is None
    assert parse_preset(text, None, ["checkpoints.mirror.path=/mnt/x"]).preset.checkpoints.mirror is not None
