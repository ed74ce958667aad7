"""No control character of outside text reaches a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core.text import safe_text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m", "\\x9b31m"),  # 8-bit CSI, which filters of ESC alone let through
        ("a\rb", "a\\x0db"),
        ("\x7f", "\\x7f"),
        ("\u202eevil", "\\u202eevil"),
        ("a\tb", "a    b"),
        ("日本語 👨‍👩‍👧 [red]x[/]", "日本語 👨‍👩‍👧 [red]x[/]"),
    ],
)
def test_controls_are_written_out(raw: str, shown: str) -> None:
    assert safe_text(raw) == shown


def test_newlines_stay_when_asked() -> None:
    assert safe_text("a\nb\x1b", newlines=True) == "a\nb\\x1b"
    assert safe_text("a\nb") == "a\\x0ab"


@given(st.text())
def test_nothing_of_category_control_survives(text: str) -> None:
    assert all(unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in safe_text(text))


@given(st.text(alphabet=st.characters(blacklist_categories=["Cc", "Cs", "Cf", "Zl", "Zp"])))
def test_other_text_is_untouched(text: str) -> None:
    assert safe_text(text) == text
