"""`llmtui show RUN`: one run whole."""

from __future__ import annotations

import typer

from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def show(run: Run, as_json: Json = False) -> None:
    """One run, whole: state, numbers, checkpoints, answers."""
    from llmtui.core.runs.facts import run_details
    from llmtui.core.runs.reader import read_state
    from llmtui.core.runs.summary import summary_text

    directory, _ = the_run(run, as_json)
    facts = run_details(read_state(directory), directory)
    if as_json:
        say_json(facts)
    else:
        say(summary_text(facts))


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(show)
