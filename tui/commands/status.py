"""`llmtui status`: one line for a prompt or tmux."""

from __future__ import annotations

import typer

from llmtui.core import words
from llmtui.tui.commands.options import Json
from llmtui.tui.commands.output import say, say_json


def status(as_json: Json = False) -> None:
    """One line: what runs now, else how the last run ended."""
    from llmtui.core.errors import LlmtuiError
    from llmtui.core.home import runs_folder
    from llmtui.core.runs.facts import run_row
    from llmtui.core.runs.glance import glance
    from llmtui.core.runs.reader import run_directories

    rows = []
    for directory in run_directories(runs_folder()):
        try:
            rows.append(run_row(glance(directory), directory))
        except (LlmtuiError, OSError):
            continue
    living = [row for row in rows if row["alive"]]
    shown = living or rows[-1:]
    if as_json:
        say_json(shown)
        return
    parts = []
    for row in shown:
        share = words.percent(row["step"], row["total_steps"])
        left = f" {words.short_duration(row['eta_seconds'])}" if row["eta_seconds"] is not None else ""
        parts.append(f"{row['name']} {row['state']} {share} loss {words.number(row['loss'])}{left}")
    say(" | ".join(parts) or "no runs")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(status)
