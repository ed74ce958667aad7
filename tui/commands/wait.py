"""`llmtui wait RUN`: until it ends."""

from __future__ import annotations

from contextlib import suppress

import typer

from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def wait(run: Run, as_json: Json = False) -> None:
    """Wait until a run has ended, and take over its exit code."""
    from llmtui.core.process.stop import wait_until_ended
    from llmtui.core.runs.facts import as_json as values
    from llmtui.core.runs.facts import run_row

    directory = the_run(run, as_json)
    try:
        state = wait_until_ended(directory)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    with suppress(typer.Exit):  # the exit code is the run's, whether or not anybody reads this
        if as_json:
            say_json(values(run_row(state, directory)))
        else:
            say(f"{directory.id} {state.state} at step {state.step}" + (f": {state.cause}" if state.cause else ""))
    raise typer.Exit(state.exit_code if state.exit_code is not None else 1)


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(wait)
