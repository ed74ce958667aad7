"""Editing keeps what people wrote; resolving writes everything out; the library finds the right file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
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


HEADED = """# --- the model ---
model:
    name_or_path: org/llama   # the small one
    # dtype: bfloat16

# --- the data ---
dataset: {name_or_path: rows.jsonl,   # mine
          val_size: 10}

# --- training ---
training:
    seed: 1
    sample_prompts:
    - |
        two
        lines

    - one   # short
    # more prompts here

# --- the end ---
"""


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("model.revision", "main", "    revision: main"),
        ("model.name_or_path", "org/name", "    name_or_path: org/name   # the small one"),
        ("dataset.limit", 5, "          val_size: 10, limit: 5}"),
        ("dataset.val_size", 0.1, "          val_size: 0.1}"),
        ("training.seed", 7, "    seed: 7"),
        ("training.eval_steps", 5, "    eval_steps: 5"),
        ("training.max_steps", None, "    max_steps: null"),
        ("notify", "echo 'done: {}'", "notify: \"echo 'done: {}'\""),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
def test_a_change_touches_one_line_and_no_other_character(
    key: str, value: Any, line: str, ending: str, mark: str
) -> None:
    before = mark + HEADED.replace("\n", ending)
    after = set_value(before, key, value)
    rows = after.removeprefix(mark).split(ending)
    assert after.startswith(mark)
    assert line in rows
    gone = [row for row in before.removeprefix(mark).split(ending) if row not in rows]
    assert len(gone) <= 1
    assert len(rows) - len(HEADED.split("\n")) == 1 - len(gone)
    if value is not None and key != "notify":
        assert value_of(parse_preset(after), key) == value


def test_a_new_key_stands_in_its_section_and_not_behind_the_next_heading() -> None:
    rows = set_value(HEADED, "model.revision", "main").splitlines()
    assert rows.index("    revision: main") == rows.index("    name_or_path: org/llama   # the small one") + 1
    rows = set_value(HEADED, "training.eval_steps", 5).splitlines()
    assert rows.index("    eval_steps: 5") == rows.index("    - one   # short") + 1


def test_removing_a_section_leaves_the_headings_around_it() -> None:
    text = unset_value(HEADED, "dataset.name_or_path")
    assert "val_size: 10}" in text and "rows.jsonl" not in text and "# mine" in text
    text = unset_value(unset_value(text, "dataset.val_size"), "training")
    assert "dataset" not in text and "seed" not in text
    for heading in ("the model", "the data", "training", "the end"):
        assert f"# --- {heading} ---" in text


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (["x"], "  prompts: [x]     # held out"),
        ([], "  prompts: []     # held out"),
        (None, "  prompts: null     # held out"),
        ("one: two", "  prompts: 'one: two'     # held out"),
    ],
)
@pytest.mark.parametrize("written", ["prompts:     # held out\n    - a\n    - b", "prompts: [a]     # held out"])
def test_the_comment_behind_a_list_stays_behind_its_key(written: str, value: Any, wanted: str) -> None:
    text = f"training:\n  {written}\n\n  # next\n  seed: 1\n"
    assert set_value(text, "training.prompts", value) == f"training:\n{wanted}\n\n  # next\n  seed: 1\n"


@pytest.mark.parametrize("written", ["lora:", "lora:   # all defaults", "lora: null  # all defaults", "lora: {}"])
def test_an_empty_section_gets_its_first_key(written: str) -> None:
    text = set_value(f"{COMMENTED}{written}\n# end\n", "lora.r", 4)
    lora = parse_preset(text).preset.lora
    assert lora is not None and lora.r == 4
    assert "# end" in text and ("# all defaults" in text) == ("#" in written)


@pytest.mark.parametrize("text", ["", "# only words\n", "{model: {name_or_path: x}}\n", "model: {name_or_path: x}"])
def test_unusual_files_can_be_edited_too(text: str) -> None:
    after = set_value(set_value(text, "model.name_or_path", "y"), "dataset.name_or_path", "d.jsonl")
    assert parse_preset(after).preset.model.name_or_path == "y"
    assert ("# only words" in after) == ("#" in text)


def test_an_alias_is_rewritten_rather_than_changed_in_two_places() -> None:
    text = "model: {name_or_path: &base org/name}\ndataset: {name_or_path: *base}\n"
    preset = parse_preset(set_value(text, "dataset.name_or_path", "rows.jsonl")).preset
    assert (preset.model.name_or_path, preset.dataset.name_or_path) == ("org/name", "rows.jsonl")


EDITS: Any = st.lists(
    st.one_of(
        st.tuples(st.just("training.seed"), st.integers(0, 2**32 - 1)),
        st.tuples(st.just("training.learning_rate"), st.floats(1e-9, 1e3)),
        st.tuples(st.just("training.sample_prompts"), st.lists(st.text(st.characters(codec="utf-8"), min_size=1).filter(
            lambda s: s.strip()), max_size=3)),
        st.tuples(st.just("model.revision"), st.none() | st.text("abc0123456789e.-_/", min_size=1)),
        st.tuples(st.just("dataset.columns"), st.dictionaries(st.sampled_from(["instruction", "output"]), st.text("a #:{,"))),
        st.tuples(st.just("lora.r"), st.integers(1, 256)),
        st.tuples(st.just("gpu_split.share"), st.booleans()),
        st.tuples(st.just("checkpoints.result"), st.sampled_from(["last"])),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(EDITS)
def test_whatever_is_edited_the_values_are_there_and_the_comments_stay(edits: list[tuple[str, Any]]) -> None:
    text = COMMENTED
    for key, value in edits:
        text = set_value(text, key, value)
    loaded = parse_preset(text.replace("name_or_path: ./llama", "name_or_path: org/llama"))
    for key, value in dict(edits).items():
        assert value_of(loaded, key) == value
    for comment in ("# my recipe", "# the small one", "# found by trying", "# longer is no better"):
        assert comment in text
    for key, _ in edits:
        text = unset_value(text, key)
    assert "# longer is no better" in text and "lora" not in text


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


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.dictionaries(st.text("a\x85\u2028#: 'é", max_size=4), st.text(max_size=4)),
)
def test_what_a_run_keeps_is_the_same_text_to_the_last_character(description: str, columns: dict[str, str]) -> None:
    edited = set_value(set_value(COMMENTED, "dataset.columns", columns), "description", description)
    loaded = parse_preset(edited)
    assert (loaded.preset.description, loaded.preset.dataset.columns) == (description, columns)
    assert parse_preset(resolve(loaded)).preset == resolved_preset(loaded)


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
    preset = resolved_preset(load_preset("mine", ["dataset={name_or_path: here.jsonl}"]))
    assert preset.dataset.name_or_path == str(tmp_path / "here.jsonl")


def test_a_copy_of_a_bundled_preset_still_finds_its_files() -> None:
    path = copy_to_user("demo", "mine")
    copied = load_preset("mine").preset
    assert Path(copied.model.name_or_path).is_dir()
    assert Path(copied.dataset.name_or_path or "").is_file()
    with pytest.raises(RefusedError):
        copy_to_user("demo", "mine")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/x",
        "a/b",
        ".hidden",
        "-rf",
        "",
        "a\nb",
        "x@1",
        "run:x",
        " ",
        " x",
        "x\t",
        "\x1b[31m",
        "\udcff",
        "\u202ex",
        "x" * 90,
    ],
)
def test_a_presets_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UsageError):
        preset_path(name)


def test_an_unknown_preset_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean demo"):
        load_preset("demoo")
    with pytest.raises(UsageError, match="no preset file"):
        load_preset("./nowhere/x.yaml")


def test_what_is_no_readable_preset_is_listed_with_its_problem_and_never_stops_the_list() -> None:
    folder = preset_path("x").parent
    (folder / "gone.yaml").symlink_to(folder / "nowhere.yaml")
    (folder / "folder.yaml").mkdir()
    (folder / "latin.yaml").write_bytes("description: caf\xe9".encode("latin-1"))
    (folder / "large.yaml").write_bytes(b"#" * (2 << 20))
    (folder / "wide.yaml").write_text(COMMENTED, encoding="utf-16")
    (folder / ".#mine.yaml").write_text("not: mine")
    found = {entry.name: entry.problem for entry in list_presets() if entry.origin == "user"}
    assert all(found[name] for name in ("gone", "folder", "latin", "large"))
    assert found["wide"] == ""
    assert len(found) == 5


def test_a_template_stays_a_name_beside_a_folder_called_so(tmp_path: Path) -> None:
    (tmp_path / "alpaca").mkdir()
    (tmp_path / "p.yaml").write_text("model: {name_or_path: org/m}\ndataset: {name_or_path: org/d, template: alpaca}\n")
    assert resolved_preset(load_preset(str(tmp_path / "p.yaml"))).dataset.template == "alpaca"


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
