"""A run's hand-over as text, made from its state now."""

from __future__ import annotations

import json
from typing import Literal

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.facts import as_json, read_summary
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.runs.summary_markdown import summary_markdown

Format = Literal["md", "json"]


def export_text(directory: RunDirectory, form: Format) -> str:
    """`md` or `json`: the facts of `llmtui show`, access tokens scrubbed."""
    facts = read_summary(directory)
    if form == "json":
        return scrub(json.dumps(as_json(facts), ensure_ascii=False, indent=1)) + "\n"
    return summary_markdown(facts)
