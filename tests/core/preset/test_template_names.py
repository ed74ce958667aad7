"""What `dataset.template` may be: a built-in, a chat template by name, a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmtui.core.errors import PresetError
from llmtui.core.preset import parse_preset
from llmtui.core.preset.later import unsupported
from llmtui.core.preset.resolving import resolved_preset
from llmtui.core.preset.schema import CHAT_TEMPLATES, TEMPLATES


def text(template: str) -> str:
    return f"model: {{name_or_path: org/m}}\ndataset: {{name_or_path: org/d, template: '{template}'}}\n"


@pytest.mark.parametrize(
    "template",
    [*TEMPLATES, *(f"chat:{name}" for name in CHAT_TEMPLATES), "own.jinja", "./own", "templates/own.j2", "~/own.txt"],
)
def test_what_can_be_run_is_accepted(template: str) -> None:
    loaded = parse_preset(text(template))
    assert loaded.preset.dataset.template == template
    assert unsupported(loaded.preset) == []


@pytest.mark.parametrize("template", ["alpacca", "chat:chatm", "chat:", "chat: chatml", "chatml", ""])
def test_what_is_no_template_is_refused_with_every_name(template: str) -> None:
    with pytest.raises(PresetError) as refused:
        parse_preset(text(template))
    (problem,) = refused.value.problems
    assert (problem.field, problem.line) == ("dataset.template", 2)
    assert all(f"chat:{name}" in problem.cure for name in CHAT_TEMPLATES)


def test_a_name_stays_a_name_and_a_path_becomes_absolute(tmp_path: Path) -> None:
    (tmp_path / "chat:chatml").mkdir()
    for template, kept in (("chat:chatml", "chat:chatml"), ("own.jinja", str(tmp_path / "own.jinja"))):
        loaded = parse_preset(text(template), tmp_path / "p.yaml")
        assert resolved_preset(loaded).dataset.template == kept
