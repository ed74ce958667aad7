"""Children that answer are spoken to in UTF-8, whatever the locale is."""

from __future__ import annotations

import sys

import pytest

from llmtui.core.process.child import ask_child

_ECHO = "import json, sys; print(json.dumps({'said': sys.stdin.read()}))"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_any_text_reaches_a_child_and_comes_back_in_any_locale(monkeypatch: pytest.MonkeyPatch, locale: str) -> None:
    for name, value in (("LC_ALL", locale), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    answer = ask_child([sys.executable, "-c", _ECHO], lambda *_: None, what="echoing", text="夜 é 👩")
    assert answer == {"said": "夜 é 👩"}
