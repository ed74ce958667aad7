"""Text from outside is only text: shown verbatim, never markup, escape code or button. (CASES F6, F7)"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from llmtui.core.errors import MachineError
from llmtui.tui.app import LlmtuiApp
from llmtui.tui.screens.palette import Entry, Palette
from llmtui.tui.widgets.list_pane import ListPane
from llmtui.tui.widgets.pane import cut, strip_of
from llmtui.tui.widgets.text_pane import wrap
from tests.tui.screen import HOSTILE, text_of, until

Make = Callable[..., LlmtuiApp]
F7 = [
    "[/usr/bin/x] done",
    "loss=[nan]",
    "[red]x",
    "[/]",
    "[@click=app.quit]q[/]",
    "torch.Size([4, 32])",
    "[INFO|trainer.py:1] ok",
]
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_a_hostile_run_is_shown_verbatim_in_every_pane(make_app: Make, size: tuple[int, int]) -> None:
    app = make_app(HOSTILE)
    seen = ""
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "20/50" in text_of(app), "the run")
        for _ in range(7):
            await pilot.press("tab", "plus")
            seen += text_of(app) + "\n"
            await pilot.press("plus")
            seen += text_of(app) + "\n"
        await pilot.press("question_mark", "escape", "colon", "escape", "y", "2")
        await until(pilot, lambda: "Runs  9" in text_of(app), "the list")
        seen += text_of(app)
        await pilot.press("slash", *"[/]", "enter", "D")
        seen += text_of(app)
    for text in F7:
        assert text in seen, text
    assert "[bold]not bold[/bold]" in seen
    assert not CONTROL.search(seen)
    assert "\\x1b" in seen  # what was an escape code is written out


async def test_hostile_presets(make_app: Make) -> None:
    app = make_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: "学習テスト①" in text_of(app), "the list")
        pane = app.screen.query_one("#presets", ListPane)
        pane.put_cursor(next(row.key for row in pane.rows if "学習" in row.key))
        await until(pilot, lambda: "データ/行.jsonl" in text_of(app), "its details")
        screen = text_of(app)
        assert "[red]括弧[/] と ｶﾅ" in screen and "[@click=app.quit]" in screen and "[/usr/bin/x]" in screen
        await pilot.press("r")
        await until(pilot, lambda: "Start 学習テスト①" in text_of(app), "the question")


@pytest.mark.parametrize("text", F7)
async def test_hostile_errors_names_and_choices(make_app: Make, text: str) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.show_error(MachineError(text, place=text, hint=text))
        await until(pilot, lambda: text_of(app).count(text) >= 2, "the error")
        await pilot.press("enter")
        app.push_screen(Palette([Entry(text, text, "help")]))
        await until(pilot, lambda: text in text_of(app), "the entry")
        await pilot.press(*"[/]", "escape")
        assert app.place is not None
        app.place.say(text)
        await until(pilot, lambda: text in text_of(app), "the word")


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), st.integers(1, 50))
def test_a_line_has_its_width_in_cells_whatever_is_in_it(text: str, width: int) -> None:
    strip = strip_of(((text, "text"), (text, "bad")), width)
    assert cell_len(strip.text) == width
    assert not CONTROL.search(strip.text.replace("\n", "\x00"))
    assert cell_len(cut(text, width)) <= width


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.integers(2, 40))
def test_wrapping_loses_no_letter_and_keeps_the_width(text: str, width: int) -> None:
    parts = wrap(text, width)
    assert all(cell_len(part) <= width for part in parts)
    if text.isascii() and text.isprintable():
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")


def test_japanese_and_emoji_are_cut_between_cells() -> None:
    assert cut("学習データ", 5) == "学習…"
    assert cut("学習データ", 4) == "学…"
    assert [cell_len(part) for part in wrap("学習データ" * 10, 7)][:2] == [6, 6]


def test_a_line_of_a_megabyte_is_cut_with_a_word() -> None:
    parts = wrap("x" * 1_000_000, 80)
    assert len(parts) < 60
    assert "996,000 characters more" in "".join(parts)


FORBIDDEN = re.compile(
    r"(?:\bStatic|\bLabel|\bButton|\bnotify|\.update|\badd_row|\badd_option|\.write_line|border_title\s*=|Text\.from_markup)\s*\(?\s*f?[\"']|markup=True"
)


def test_no_widget_that_reads_markup_is_given_text() -> None:
    """Everything is drawn by `Pane` through `strip_of`; what reads markup stays out of the house."""
    import llmtui.tui

    folder = Path(llmtui.tui.__path__[0])
    found = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text("utf-8")
        for number, line in enumerate(source.splitlines(), 1):
            if FORBIDDEN.search(line):
                found.append(f"{path.name}:{number}: {line.strip()}")
        for widget in ("Static", "Label", "DataTable", "OptionList", "RichLog", "Markdown", "Button", "Checkbox"):
            if re.search(rf"from textual\.widgets.* import .*\b{widget}\b", source):
                found.append(f"{path.name}: imports {widget}")
    assert not found, "\n".join(found)
