"""The editor keeps what was typed, says what is wrong, and loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from textual.events import Paste

from llmtui.core.home import user_presets_folder
from llmtui.core.preset import load_preset, parse_preset
from llmtui.tui.screens.editor_dialogs import Difference, Overwrite, SaveAs, Unsaved
from llmtui.tui.widgets.editor_draft import read_draft, write_draft
from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.editor_form import EditorForm
from llmtui.tui.widgets.editor_help import NotePane
from llmtui.tui.widgets.editor_rows import FieldRow
from llmtui.tui.widgets.editor_summary import SummaryPane
from tests.tui.editor.small_app import SmallApp, app_on, burst, until

TEXT: Final = """\
# mine
model: {name_or_path: sshleifer/tiny-gpt2}   # tiny
dataset:
  name_or_path: rows.jsonl
  val_size: 100
lora:
  r: 8          # rank
  alpha: 32
training:
  learning_rate: 3e-4
  per_device_train_batch_size: 4
  gradient_accumulation_steps: 2
"""


def row(app: SmallApp, key: str) -> FieldRow:
    found = next(row for row in app.editor.form.rows if row.key == key)
    assert isinstance(found, FieldRow)
    return found


def help_text(app: SmallApp) -> str:
    return "\n".join(text for text, _ in app.editor.query_one("#help", NotePane).lines)


def summary_text(app: SmallApp) -> str:
    return "\n".join(f"{fact.name} {fact.text}" for fact in app.editor.query_one(SummaryPane).facts)


def go(app: SmallApp, key: str) -> None:
    burst(app, "slash", f"={key}", "enter")


def type_value(app: SmallApp, key: str, value: str) -> None:
    go(app, key)
    burst(app, "enter", "ctrl+u", *([f"={value}"] if value else []), "enter")


async def test_an_invalid_value_is_explained_while_it_is_typed_and_the_row_is_marked(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "training.per_device_train")
        burst(app, "enter", "ctrl+u", "=0")
        await until(pilot, lambda: "must be ≥ 1" in help_text(app))
        assert app.editor.document.text == TEXT, "nothing is kept before enter"
        burst(app, "enter")
        await until(pilot, lambda: row(app, "training.per_device_train_batch_size").problem)
        assert "must be ≥ 1" in summary_text(app)
        burst(app, "r")
        await pilot.pause()
        assert not app.to_run, "an invalid preset is not run"


async def test_text_that_is_no_yaml_keeps_the_field_open_and_esc_leaves_it_as_it_was(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.target", "[q_proj")
        await until(pilot, lambda: "a list ends with ]" in help_text(app))
        assert app.editor.form.typing == "lora.target_modules"
        burst(app, "escape")
        await until(pilot, lambda: app.editor.form.typing is None)
        assert app.editor.document.text == TEXT
        assert not app.closed, "esc leaves the field, not the editor"


async def test_every_problem_is_listed_beside_the_form_with_its_line(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "0")
        type_value(app, "dataset.val_size", "-1")
        type_value(app, "training.learning_rate", "quick")
        await until(pilot, lambda: row(app, "training.learning_rate").problem)
        for words in ("line 5 dataset.val_size", "line 7 lora.r", "line 10 training.learning_rate"):
            assert words in summary_text(app)
        burst(app, "p")
        await until(pilot, lambda: app.editor.form.row.key == "dataset.val_size")
        burst(app, "p")
        await until(pilot, lambda: app.editor.form.row.key == "lora.r")


async def test_undo_and_redo_go_through_every_change(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        type_value(app, "training.seed", "7")
        await until(pilot, lambda: row(app, "training.seed").text == "7")
        edited = app.editor.document.text
        burst(app, "u", "u", "u")
        await until(pilot, lambda: app.editor.document.text == TEXT)
        assert app.editor.form.row.key == "lora.r", "the cursor goes where the change was"
        assert not row(app, "training.seed").is_set
        burst(app, "U", "U")
        await until(pilot, lambda: app.editor.document.text == edited)


async def test_a_default_is_told_by_a_word_and_comes_back_with_x(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        assert not row(app, "training.seed").is_set
        screen = "\n".join(strip.text for strip in app.editor.form._strips)
        assert "default" in screen
        type_value(app, "dataset.val_size", "50")
        burst(app, "x")
        await until(pilot, lambda: not row(app, "dataset.val_size").is_set)
        assert row(app, "dataset.val_size").text == "0"
        assert "val_size" not in app.editor.document.text


async def test_clearing_a_field_brings_its_default_back(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "")
        await until(pilot, lambda: not row(app, "lora.r").is_set)
        assert app.editor.document.is_on("lora")


async def test_lora_is_switched_off_and_on_again_with_its_values(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "lora")
        burst(app, "space")
        await until(pilot, lambda: not app.editor.document.is_on("lora"))
        assert app.editor.document.checked.preset is not None
        assert app.editor.document.checked.preset.lora is None, "absent: all weights are trained"
        assert row(app, "lora.r").off
        burst(app, "enter")
        await until(pilot, lambda: app.editor.document.is_on("lora"))
        lora = app.editor.document.checked.preset.lora
        assert lora is not None and (lora.r, lora.lora_alpha) == (8, 32)


async def test_taking_away_the_last_key_of_lora_does_not_turn_it_into_full_fine_tuning(tmp_path: Path) -> None:
    app = app_on("model: {name_or_path: a}\ndataset: {name_or_path: b.txt}\nlora: {r: 4}\n", tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "lora.r")
        burst(app, "x")
        await until(pilot, lambda: not row(app, "lora.r").is_set)
        preset = app.editor.document.checked.preset
        assert preset is not None and preset.lora is not None


async def test_a_short_name_gives_way_to_the_key_that_is_edited(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        assert row(app, "lora.lora_alpha").text == "32", "`alpha` is lora_alpha"
        type_value(app, "lora.lora_alpha", "64")
        await until(pilot, lambda: row(app, "lora.lora_alpha").text == "64")
        preset = app.editor.document.checked.preset
        assert preset is not None and preset.lora is not None and preset.lora.lora_alpha == 64


async def test_a_section_written_as_one_value_is_shown_and_edited_key_by_key(tmp_path: Path) -> None:
    app = app_on(TEXT + "checkpoints: {mirror: /mnt/drive}\n", tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        assert row(app, "checkpoints.mirror.path").text == "/mnt/drive"
        type_value(app, "checkpoints.mirror.bandwidth", "20MB")
        await until(pilot, lambda: row(app, "checkpoints.mirror.bandwidth").is_set)
        preset = app.editor.document.checked.preset
        assert preset is not None and preset.checkpoints.mirror is not None
        assert preset.checkpoints.mirror.path == "/mnt/drive", "the other key is kept"


async def test_numbers_stay_as_they_were_typed(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(TEXT, path)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "training.learning_rate", "2e-5")
        burst(app, "w")
        await until(pilot, lambda: app.saved)
    assert "  learning_rate: 2e-5\n" in path.read_text()
    assert "# rank" in path.read_text() and "# tiny" in path.read_text()


async def test_the_effect_of_a_value_is_said_in_numbers(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "gradient_accumulation")
        await until(pilot, lambda: "4 per device × 2 accumulated" in help_text(app))
        burst(app, "enter", "ctrl+u", "=16")
        await until(pilot, lambda: "4 per device × 16 accumulated" in help_text(app))


@pytest.mark.parametrize(
    "hostile",
    [
        "[/usr/bin/x] done",
        "[red]x",
        "[/]",
        "[@click=app.quit]q[/]",
        "学習テスト①",
        "👨‍👩‍👧 ｶﾅ",
        "{{a}}",
        "012",
        "yes",
        "a: b # c",
    ],
)
async def test_hostile_text_is_shown_and_kept_as_it_is(hostile: str, tmp_path: Path) -> None:
    path = tmp_path / "学習 [red].yaml"
    app = app_on(TEXT, path)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "description", hostile)
        await until(pilot, lambda: row(app, "description").is_set)
        assert row(app, "description").text == hostile
        assert hostile in "\n".join(strip.text for strip in app.editor.form._strips)
        for key in ("d", "escape", "w"):
            burst(app, key)
            await pilot.pause()
        await until(pilot, lambda: app.saved)
        assert not app.errors
    assert parse_preset(path.read_text(encoding="utf-8"), path).preset.description == hostile


async def test_escape_codes_in_a_file_never_reach_the_terminal(tmp_path: Path) -> None:
    text = 'description: "a\\e[31mred\\x9b2J\\u202Eb\\nsecond"\n' + TEXT
    app = app_on(text, tmp_path / "mine.yaml")
    async with app.run_test(size=(200, 50)) as pilot:
        burst(app, "g", "enter")
        await until(pilot, lambda: app.editor.form.typing == "description")
        shown = app.editor.form.field.value
        assert not any(
            ord(character) < 32 or 0x7F <= ord(character) < 0xA0 or character == "\u202e" for character in shown
        )
        drawn = "".join(strip.text for strip in app.editor.form._strips)
        assert "\x1b" not in drawn and "\x9b" not in drawn and "\u202e" not in drawn
        burst(app, "left", "=!", "enter")
        await until(pilot, lambda: app.editor.form.typing is None)
        preset = app.editor.document.checked.preset
        assert preset is not None and preset.description == "a\x1b[31mred\x9b2J\u202eb\nsecond!"


async def test_a_bundled_preset_is_saved_as_a_copy_under_a_name_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = tmp_path / "bundled" / "night.yaml"
    app = app_on(TEXT, bundled)
    monkeypatch.setattr("llmtui.core.preset.library.bundled_folder", lambda: bundled.parent)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "training.seed", "7")
        burst(app, "w")
        await until(pilot, lambda: isinstance(app.screen, SaveAs))
        burst(app, "ctrl+u", "=a/b", "enter")
        await pilot.pause(0.1)
        assert isinstance(app.screen, SaveAs), "a name that is no file's name is refused"
        burst(app, "ctrl+u", "=mine", "enter")
        await until(pilot, lambda: app.saved)
        assert app.editor.shown_name == "mine"
        type_value(app, "training.seed", "8")
        burst(app, "w")
        await until(pilot, lambda: len(app.saved) == 2)
    own = user_presets_folder() / "mine.yaml"
    assert app.saved == [own, own]
    assert load_preset("mine").preset.training.seed == 8
    assert bundled.read_text() == TEXT
    assert load_preset("mine").preset.dataset.name_or_path == str(bundled.parent / "rows.jsonl"), "still the same file"


async def test_leaving_asks_when_changes_are_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(TEXT, path)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        await until(pilot, lambda: row(app, "lora.r").text == "16")
        burst(app, "escape")
        await until(pilot, lambda: isinstance(app.screen, Unsaved))
        burst(app, "escape")
        await until(pilot, lambda: app.screen is app.editor)
        burst(app, "escape")
        await until(pilot, lambda: isinstance(app.screen, Unsaved))
        burst(app, "w")
        await until(pilot, lambda: app.closed)
    assert "r: 16 " in path.read_text()


async def test_leaving_an_unchanged_preset_asks_nothing(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        burst(app, "escape")
        await until(pilot, lambda: app.closed)


async def test_a_file_that_became_another_meanwhile_is_not_written_over_unasked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(TEXT, path)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        await until(pilot, lambda: row(app, "lora.r").text == "16")
        path.write_text("# somebody else's\n")
        burst(app, "w")
        await until(pilot, lambda: isinstance(app.screen, Overwrite))
        burst(app, "escape")
        await until(pilot, lambda: app.screen is app.editor)
        assert path.read_text() == "# somebody else's\n"
        burst(app, "w")
        await until(pilot, lambda: isinstance(app.screen, Overwrite))
        burst(app, "w")
        await until(pilot, lambda: app.saved)


async def test_the_difference_shows_lines_with_signs(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        burst(app, "d")
        await until(pilot, lambda: isinstance(app.screen, Difference))
        lines = [text for text, _ in app.screen.text()] if isinstance(app.screen, Difference) else []
        assert "-  r: 8          # rank" in lines
        assert any(line.startswith("+  r: 16") and "# rank" in line for line in lines)


async def test_run_saves_first_and_asks_the_app(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    app = app_on(TEXT, path)
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        burst(app, "r")
        await until(pilot, lambda: app.to_run == [path])
    assert app.saved == [path] and "r: 16" in path.read_text()


async def test_pasted_lines_become_one_line_without_control_characters(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "description")
        burst(app, "enter")
        await until(pilot, lambda: app.editor.form.typing is not None)
        app.post_message(Paste("first\r\n  second\x1b[2J\n"))
        await until(pilot, lambda: app.editor.form.field.value)
        assert app.editor.form.field.value == "first second\\x1b[2J"


async def test_tab_goes_through_fields_while_typing(tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        go(app, "lora.r")
        burst(app, "enter", "ctrl+u", "=4", "tab", "ctrl+u", "=12", "tab", "ctrl+u", "=0.1", "enter", "j")
        await until(pilot, lambda: row(app, "lora.lora_dropout").text == "0.1")
        assert (row(app, "lora.r").text, row(app, "lora.lora_alpha").text) == ("4", "12")
        await until(pilot, lambda: app.editor.form.row.key == "lora.target_modules")


async def test_a_save_that_fails_is_said_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    app = app_on(TEXT, folder / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        type_value(app, "lora.r", "16")
        await until(pilot, lambda: row(app, "lora.r").text == "16")
        (folder / "mine.yaml").unlink()
        folder.rmdir()
        burst(app, "w")
        await until(pilot, lambda: app.errors)
        assert app.editor.document.changed and row(app, "lora.r").text == "16"


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (20, 6), (40, 12), (80, 24), (300, 100)])
async def test_any_size_of_terminal_is_survived(size: tuple[int, int], tmp_path: Path) -> None:
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=size) as pilot:
        type_value(app, "lora.r", "16")
        burst(app, "G", "enter", "=x")
        await until(pilot, lambda: app.editor.form.typing is not None)
        for other in ((80, 24), (1, 1), (200, 50), size):
            await pilot.resize_terminal(*other)
        burst(app, "escape", "g")
        await until(pilot, lambda: app.editor.form.typing is None)
        assert row(app, "lora.r").text == "16"


async def test_the_keys_of_the_table_are_the_keys_of_the_place(tmp_path: Path) -> None:
    from llmtui.tui.keys import KEYS

    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)):
        holders = {
            "editor": app.editor,
            "field": app.editor.query_one(TypingField),
            "list": app.editor.query_one(EditorForm),
        }
        for key in KEYS:
            if key.scope in holders:
                assert hasattr(holders[key.scope], f"action_{key.action.partition('(')[0]}"), key


async def test_edits_outlive_a_lost_terminal_until_they_are_saved_or_dropped(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    lost = app_on(TEXT, path)
    async with lost.run_test(size=(80, 24)) as pilot:
        type_value(lost, "lora.r", "16")
        await until(pilot, lambda: read_draft(path, TEXT) is not None)
    again = app_on(TEXT, path)
    async with again.run_test(size=(80, 24)) as pilot:
        assert row(again, "lora.r").text == "16" and row(again, "lora.r").changed
        assert path.read_text() == TEXT
        burst(again, "escape", "X")
        await until(pilot, lambda: again.closed)
    assert read_draft(path, TEXT) is None
    third = app_on(TEXT, path)
    async with third.run_test(size=(80, 24)):
        assert row(third, "lora.r").text == "8"


async def test_edits_of_a_file_that_became_another_are_not_put_into_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    write_draft(path, TEXT, TEXT.replace("r: 8", "r: 16"))
    app = app_on(TEXT + "# newer\n", path)
    async with app.run_test(size=(80, 24)):
        assert row(app, "lora.r").text == "8"
