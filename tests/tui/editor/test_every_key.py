"""Every key of the schema, walked: reached with the keyboard alone, edited, saved, and found in the file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pytest

from llmtui.core.preset import Leaf, parse_preset, value_of, walk_leaves
from tests.tui.editor.small_app import SmallApp, app_on, burst, until

BASE: Final = """\
# The whole night's work.
model:
  name_or_path: cyberagent/open-calm-7b   # the base
  quantization: int8
dataset:
  name_or_path: rows.jsonl
  val_size: 100          # rows
lora:
  r: 8                   # small on purpose
training:
  eval_steps: 200
  # the paper's
  learning_rate: 3e-4
"""
COMMENTS: Final = ("# The whole night's work.", "# the base", "# rows", "# small on purpose", "# the paper's")

# What the kind of a key alone does not say.
VALUES: Final = {
    "dataset.sources": "[{name_or_path: more.jsonl}]",
    "dataset.columns": "{a: b}",
    "dataset.label.names": "[neg, pos]",
    "dataset.template": "own学.jinja",
    "dataset.val": "held.jsonl",
    "dataset.val_size": "0.2",
    "gpu_split.gpus": "[0, 1]",
    "gpu_split.max_memory": "{0: 7GiB}",
    "sweep.input_tokens": "[9, 5]",
    "sweep.output_tokens": "[64]",
    "sweep.batch_sizes": "[1, 8]",
    "sweep.splits": "[{a: b}]",
}

# What contradicts another key is edited by itself, in a preset of which this part is another one.
ALONE: Final = {
    "dataset.val": ("  val_size: 100          # rows\n", ""),
    "generation.system": ("lora:\n", "  template: chat\nlora:\n"),
}

SECTIONS: Final = tuple(dict.fromkeys(leaf.section for leaf in walk_leaves()))


def another_value(leaf: Leaf) -> str | None:
    """A text to type that is not the present value; None where the value is cycled with a key."""
    if leaf.key in VALUES:
        return VALUES[leaf.key]
    if leaf.kind in ("bool", "choice"):
        return None
    low = leaf.minimum or 0
    default = leaf.default if isinstance(leaf.default, int | float) else 0
    return {
        "int": str(int(max(low, default)) + 1),
        "float": "0.75" if default != 0.75 and low < 0.75 else str(low + 1),
        "list": "[x]",
        "map": "{a: b}",
        "text": "x学",
    }[leaf.kind]


def change(app: SmallApp, leaf: Leaf) -> None:
    typed = another_value(leaf)
    if typed is None:
        burst(app, "space")
    else:
        burst(app, "enter", "ctrl+u", f"={typed}", "enter")


def stands_on(app: SmallApp, key: str) -> bool:
    return app.editor.form.row.key == key


def differs(app: SmallApp, text: str) -> bool:
    return app.editor.document.text != text


@pytest.mark.parametrize("section", SECTIONS)
async def test_every_key_of_a_section_is_reached_edited_saved_and_found(section: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(BASE, path)
    leaves = [leaf for leaf in walk_leaves() if leaf.section == section]
    before = parse_preset(BASE, path)
    async with app.run_test(size=(80, 24)) as pilot:
        burst(app, "slash", f"={leaves[0].key}", "enter")
        for number, leaf in enumerate(leaves):
            if number:
                burst(app, "j")
            await until(pilot, partial(stands_on, app, leaf.key))
            if leaf.key in ALONE:
                continue
            text = app.editor.document.text
            change(app, leaf)
            await until(pilot, partial(differs, app, text))
        burst(app, "w")
        await until(pilot, lambda: app.saved)
    text = path.read_text(encoding="utf-8")
    after = parse_preset(text, path)
    for leaf in leaves:
        if leaf.key in ALONE:
            continue
        assert value_of(after, leaf.key) != value_of(before, leaf.key), leaf.key
        assert value_of(after, leaf.key) != leaf.default, leaf.key
    assert all(comment in text for comment in COMMENTS)
    untouched = [leaf.key for leaf in walk_leaves() if leaf.section != section and leaf.section != ""]
    optional = ("lora.", "sweep.", "checkpoints.mirror.", "dataset.label.")
    assert all(value_of(after, key) == value_of(before, key) for key in untouched if not key.startswith(optional)), (
        "nothing else changed"
    )


@pytest.mark.parametrize("key", ALONE)
async def test_a_key_that_contradicts_another_is_edited_by_itself(key: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(BASE.replace(*ALONE[key]), path)
    async with app.run_test(size=(80, 24)) as pilot:
        burst(app, "slash", f"={key}", "enter")
        await until(pilot, partial(stands_on, app, key))
        change(app, next(leaf for leaf in walk_leaves() if leaf.key == key))
        burst(app, "w")
        await until(pilot, lambda: app.saved)
    leaf = next(leaf for leaf in walk_leaves() if leaf.key == key)
    assert value_of(parse_preset(path.read_text(encoding="utf-8"), path), key) == another_value(leaf)


async def test_all_keys_are_passed_by_going_down_and_by_going_up(tmp_path: Path) -> None:
    app = app_on(BASE, tmp_path / "mine.yaml")
    every = {leaf.key for leaf in walk_leaves()}
    async with app.run_test(size=(80, 24)) as pilot:
        form = app.editor.form
        for key, end in (("down", len(form.rows) - 1), ("k", 1)):
            seen = {form.row.key}
            while form.cursor != end:
                stood = form.row.key
                burst(app, key)
                await until(pilot, lambda: form.row.key != stood)  # noqa: B023
                seen.add(form.row.key)
            assert every <= seen
