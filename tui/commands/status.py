"""`llmtui status`: one line for a prompt or tmux."""

from __future__ import annotations

import typer

from llmtui.core import words
from llmtui.core.runs.facts import RunRow
from llmtui.tui.commands.options import Json
from llmtui.tui.commands.output import say, say_json


def status(as_json: Json = False) -> None:
    """One line: what runs now, else how the last run ended."""
    from llmtui.core.runs.facts import as_json as values

    rows = _rows()
    living = [row for row in rows if row.alive]
    shown = living or rows[-1:]
    if as_json:
        say_json([values(row) for row in shown])
    else:
        say(" | ".join(_words(row) for row in shown).replace("\n", " ") or "no runs")


def _words(row: RunRow) -> str:
    if not row.alive:
        return f"{row.name} {row.state}, step {words.count(row.step)}, loss {words.number(row.loss)}"
    if row.total_steps is None:
        return f"{row.name} {(row.phase or row.state).replace('_', ' ')}"
    left = f", {words.short_duration(row.eta_seconds)} left" if row.eta_seconds is not None else ""
    return f"{row.name} {row.state} {words.percent(row.step, row.total_steps)}, loss {words.number(row.loss)}{left}"


def _rows() -> list[RunRow]:
    """At a glance: a prompt must not wait for whole files to be read."""
    from llmtui.core.errors import LlmtuiError
    from llmtui.core.home import runs_folder
    from llmtui.core.runs.facts import run_row
    from llmtui.core.runs.glance import glance
    from llmtui.core.runs.reader import liveness, run_directories

    everything = run_directories(runs_folder())
    wanted = [d for d in everything if liveness(d).any] or list(reversed(everything))
    rows = []
    for directory in wanted:
        try:
            rows.append(run_row(glance(directory), directory))
        except (LlmtuiError, OSError):
            continue
        if not rows[-1].alive:
            break
    return rows


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(status)
