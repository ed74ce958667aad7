"""Every key of the schema, walked: reached with the keyboard alone, edited, saved, and found in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from textual.pilot import Pilot

from llmtui.core.preset import Leaf, parse_preset, value_of, walk_leaves
from tests.tui.editor.small_app import SmallApp, app_on, until

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
    "dataset.sources": "[{a: b}]",
    "dataset.columns": "{a: b}",
    "dataset.label": "{a: b}",
    "dataset.clean": "{a: true}",
    "dataset.val_size": "0.2",
    "gpu_split.gpus": "[0, 1]",
    "gpu_split.max_memory": "{0: 7GiB}",
    "sweep.input_tokens": "[9, 5]",
    "sweep.output_tokens": "[64]",
    "sweep.batch_sizes": "[1, 8]",
    "sweep.splits": "[{a: b}]",
}

SECTIONS: Final = tuple(dict.fromkeys(leaf.section for leaf in walk_leaves()))


def another_value(leaf: Leaf) -> str | None:
    """A text to type that is not the present value; None where the value is cycled with a key."""
    if leaf.key in VALUES:
        return VALUES[leaf.key]
    if leaf.kind in ("bool", "choice"):
        return None
    low = leaf.minimum or 0
    return {
        "int": str(int(max(low, leaf.default or 0)) + 1),
        "float": "0.75" if leaf.default != 0.75 and low < 0.75 else str(low + 1),
        "list": "[x]",
        "map": "{a: b}",
        "text": "x学",
    }[leaf.kind]


KEYS_OF: Final = {
    " ": "space", ".": "full_stop", "_": "underscore", "-": "minus", "[": "left_square_bracket",
    "]": "right_square_bracket", "{": "left_curly_bracket", "}": "right_curly_bracket", ":": "colon", ",": "comma",
}  # fmt: skip


async def type_text(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*(KEYS_OF.get(character, character) for character in text))


async def change(app: SmallApp, pilot: Pilot[None], leaf: Leaf) -> None:
    typed = another_value(leaf)
    if typed is None:
        await pilot.press("space")
        return
    await pilot.press("enter")
    await pilot.press("ctrl+u")
    await type_text(pilot, typed)
    await pilot.press("enter")
    await until(pilot, lambda: app.editor.form.typing is None)


@pytest.mark.parametrize("section", SECTIONS)
async def test_every_key_of_a_section_is_reached_edited_saved_and_found(section: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(BASE, path)
    leaves = [leaf for leaf in walk_leaves() if leaf.section == section]
    before = parse_preset(BASE, path)
    expected: dict[str, Any] = {}
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash")
        await type_text(pilot, leaves[0].key)
        await pilot.press("enter")
        for number, leaf in enumerate(leaves):
            if number:
                await pilot.press("j")
            assert app.editor.form.row.key == leaf.key, "j goes through the section's keys in order"
            await change(app, pilot, leaf)
            expected[leaf.key] = app.editor.document.text_of(leaf.key)
        await pilot.press("w")
        await until(pilot, lambda: app.saved)
    text = path.read_text(encoding="utf-8")
    after = parse_preset(text, path)
    for leaf in leaves:
        assert value_of(after, leaf.key) != value_of(before, leaf.key), leaf.key
        assert value_of(after, leaf.key) != leaf.default, leaf.key
    assert all(comment in text for comment in COMMENTS)
    untouched = [leaf.key for leaf in walk_leaves() if leaf.section != section and leaf.section != ""]
    optional = ("lora.", "sweep.", "checkpoints.mirror.")
    assert all(value_of(after, key) == value_of(before, key) for key in untouched if not key.startswith(optional)), (
        "nothing else changed"
    )


async def test_all_keys_are_passed_by_going_down_and_by_going_up(tmp_path: Path) -> None:
    app = app_on(BASE, tmp_path / "mine.yaml")
    every = {leaf.key for leaf in walk_leaves()}
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("down", "k"):
            seen = {app.editor.form.row.key}
            for _ in range(len(app.editor.form.rows)):
                await pilot.press(key)
                seen.add(app.editor.form.row.key)
            assert every <= seen
