"""Editing keeps what people wrote; resolving writes everything out; the library finds the right file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core.errors import RefusedError, UsageError
from llmtui.core.preset import (
    copy_to_user,
    differences,
    list_presets,
    load_preset,
    parse_preset,
    resolve,
    resolved_preset,
    set_value,
    unset_value,
    value_of,
    walk_leaves,
)
from llmtui.core.preset.library import preset_path

COMMENTED = """# my recipe
model:
  name_or_path: ./llama   # the small one
dataset: {name_or_path: rows.jsonl}

training:
  learning_rate: 3e-4     # found by trying
  # longer is no better
  num_train_epochs: 2
"""


def test_comments_order_and_quotes_survive_a_change() -> None:
    text = set_value(COMMENTED, "training.learning_rate", 1e-4)
    for line in ("# my recipe", "# the small one", "# found by trying", "# longer is no better"):
        assert line in text
    assert text.index("model:") < text.index("dataset:") < text.index("training:")
    assert parse_preset(text).preset.training.learning_rate == 1e-4


def test_a_missing_section_is_made_and_an_emptied_one_goes() -> None:
    text = set_value(COMMENTED, "lora.r", 4)
    assert parse_preset(text).preset.lora is not None
    assert unset_value(text, "lora.r").strip() == COMMENTED.strip()
    assert unset_value(COMMENTED, "lora.r") == COMMENTED


@given(st.text(max_size=60))
def test_any_text_survives_being_set(value: str) -> None:
    clean = "".join(c for c in value if c.isprintable() or c in "\n\t")
    text = set_value(COMMENTED, "description", clean)
    assert parse_preset(text).preset.description == clean or "hf_" in clean


@given(st.floats(min_value=1e-9, max_value=1e6), st.integers(min_value=1, max_value=10**9))
def test_any_number_survives_being_set(rate: float, steps: int) -> None:
    text = set_value(set_value(COMMENTED, "training.learning_rate", rate), "training.max_steps", steps)
    training = parse_preset(text).preset.training
    assert (training.learning_rate, training.max_steps) == (rate, steps)


@pytest.mark.parametrize("entry", list_presets(), ids=lambda e: e.name)
def test_every_bundled_preset_is_valid_and_its_resolved_text_means_the_same(entry: Any) -> None:
    assert entry.problem == ""
    assert entry.description
    loaded = load_preset(str(entry.path))
    again = parse_preset(resolve(loaded))
    assert again.preset == resolved_preset(loaded)
    assert again.warnings == () or loaded.warnings


def test_the_published_recipe_is_in_the_preset() -> None:
    preset = load_preset("opencalm-7b-dolly-ja").preset
    assert preset.lora is not None
    got = (preset.model.name_or_path, preset.model.quantization, preset.lora.r, preset.lora.lora_alpha,
           preset.lora.lora_dropout, preset.lora.target_modules, preset.dataset.val_size, preset.dataset.max_length,
           preset.training.num_train_epochs, preset.training.learning_rate,
           preset.training.per_device_train_batch_size, preset.training.eval_steps, preset.training.logging_steps,
           preset.checkpoints.save_steps, preset.checkpoints.save_total_limit, preset.training.seed)  # fmt: skip
    assert got == ("cyberagent/open-calm-7b", "int8", 8, 16, 0.05, ["query_key_value"], 2000, 256, 3, 3e-4, 8, 200, 20,
                   200, 3, 42)  # fmt: skip


def test_relative_paths_are_the_presets_and_those_of_set_the_working_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "mine.yaml").write_text("model: {name_or_path: ./m}\ndataset: {name_or_path: d.jsonl}\n")
    monkeypatch.chdir(tmp_path)
    preset = resolved_preset(load_preset("presets/mine.yaml", ["dataset.name_or_path=here.jsonl"]))
    assert preset.model.name_or_path == str(tmp_path / "presets" / "m")
    assert preset.dataset.name_or_path == str(tmp_path / "here.jsonl")
    assert resolved_preset(load_preset("mine", ["model.name_or_path=org/name"])).model.name_or_path == "org/name"


def test_a_copy_of_a_bundled_preset_still_finds_its_files() -> None:
    path = copy_to_user("demo", "mine")
    copied = load_preset("mine").preset
    assert Path(copied.model.name_or_path).is_dir()
    assert Path(copied.dataset.name_or_path or "").is_file()
    with pytest.raises(RefusedError):
        copy_to_user("demo", "mine")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", ".hidden", "-rf", "", "a\nb", "x@1", "run:x"])
def test_a_presets_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UsageError):
        preset_path(name)


def test_an_unknown_preset_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean demo"):
        load_preset("demoo")
    with pytest.raises(UsageError, match="no preset file"):
        load_preset("./nowhere/x.yaml")


def test_the_users_preset_comes_before_the_bundled_one_and_a_broken_one_is_listed() -> None:
    preset_path("demo").write_text("model: {name_or_path: mine/model}\ndataset: {name_or_path: a/b}\n")
    preset_path("broken").write_text("model: [\n")
    assert load_preset("demo").preset.model.name_or_path == "mine/model"
    assert next(e for e in list_presets() if e.name == "broken").problem


def test_differences_name_the_keys_that_differ_alone() -> None:
    first, second = load_preset("opencalm-7b-dolly-ja"), load_preset("rinna-3.6b-dolly-ja")
    assert {key for key, _, _ in differences(first, second)} == {
        "description", "model.name_or_path", "dataset.template",
    }  # fmt: skip


def test_every_leaf_has_help_and_a_default_that_is_valid() -> None:
    loaded = parse_preset(COMMENTED)
    leaves = list(walk_leaves())
    assert len({leaf.key for leaf in leaves}) == len(leaves) > 80
    for leaf in leaves:
        assert leaf.help.endswith("."), leaf.key
        if not leaf.required and leaf.section in ("training", "checkpoints", "dataset", "gpu_split", "limits"):
            text = set_value(COMMENTED, leaf.key, leaf.default) if leaf.key != "dataset.name_or_path" else COMMENTED
            assert value_of(parse_preset(text), leaf.key) == (
                leaf.default if text != COMMENTED else value_of(loaded, leaf.key)
            )
