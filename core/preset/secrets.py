"""Access tokens do not belong in presets: found wherever they stand, comments too, and never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from llmtui.core.errors import Problem

# Hugging Face's user and organisation tokens, GitHub's, OpenAI's.
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(hf_|api_org_|ghp_|github_pat_|sk-(?:proj-)?)[A-Za-z0-9][A-Za-z0-9_-]{15,}"
)
_CURE: Final = "remove it and log in with `hf auth login`, or set HF_TOKEN in the environment"


def holds_token(text: str) -> bool:
    """Whether something in the text looks like an access token."""
    return any(_looks_real(match) for match in _TOKEN.finditer(text))


def without_tokens(problem: Problem) -> Problem:
    """The same problem with every token cut to its first letters."""
    return replace(
        problem, field=_cut(problem.field), value=_cut(problem.value), problem=_cut(problem.problem),
        cure=_cut(problem.cure),
    )  # fmt: skip


def token_problems(text: str, file: str, lines: Mapping[str, int], sets: Sequence[str]) -> list[Problem]:
    """A problem for every line and assignment that holds a token."""
    found = []
    for number, row in enumerate(text.splitlines(), start=1):
        if holds_token(row):
            field = next((key for key, line in reversed(list(lines.items())) if line == number), "")
            found.append(Problem(file, number, field, "", "an access token stands here", _CURE))
    for assignment in sets:
        if holds_token(assignment):
            field = assignment.partition("=")[0].strip()
            found.append(Problem("--set", None, field, "", "an access token stands here", _CURE))
    return found


def _looks_real(match: re.Match[str]) -> bool:
    """Tokens are long runs of letters and digits; names such as `hf_my_long_model_name` are words."""
    body = match.group()[len(match.group(1)) :]
    return max(len(run) for run in re.split(r"[_-]", body)) >= 16


def _cut(text: str) -> str:
    return _TOKEN.sub(lambda match: f"{match.group(1)}…" if _looks_real(match) else match.group(), text)
