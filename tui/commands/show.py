"""`llmtui show RUN`: one run whole."""

from __future__ import annotations

import typer

from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def show(run: Run, as_json: Json = False) -> None:
    """One run, whole: state, numbers, memory, checkpoints, answers."""
    from llmtui.core.runs.facts import as_json as values
    from llmtui.core.runs.facts import read_summary
    from llmtui.core.runs.summary_text import summary_text

    directory = the_run(run, as_json)
    facts = read_summary(directory)
    if as_json:
        say_json(values(facts))
    else:
        say(summary_text(facts))


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(show)
