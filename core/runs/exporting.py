"""A run's hand-over as text, made from its state now."""

from __future__ import annotations

import json

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.facts import run_details
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.summary import scrub, summary_markdown


def export_text(directory: RunDirectory, form: str) -> str:
    """`md` or `json`; the same facts as `llmtui show`."""
    facts = run_details(read_state(directory), directory)
    if form == "json":
        return scrub(json.dumps(facts, ensure_ascii=False, indent=1)) + "\n"
    return summary_markdown(facts)
