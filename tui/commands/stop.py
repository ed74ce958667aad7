"""`llmtui stop RUN`: end a run, and wait until it really has ended."""

from __future__ import annotations

from typing import Annotated

import typer

from llmtui.core.errors import UsageError
from llmtui.core.runs.state import RESUMABLE_STATES
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def stop(
    run: Run,
    now: Annotated[bool, typer.Option("--now", help="Without a checkpoint.")] = False,
    kill: Annotated[bool, typer.Option("--kill", help="At once, by force.")] = False,
    as_json: Json = False,
) -> None:
    """Save, stop, and wait until every process is gone."""
    from llmtui.core.process.stop import stop as ask
    from llmtui.core.process.stop import wait_until_ended
    from llmtui.core.runs.facts import as_json as values
    from llmtui.core.runs.facts import run_row

    if now and kill:
        raise UsageError("--now and --kill exclude each other", hint="use one of them")
    directory = the_run(run, as_json, destructive=True)
    ask(directory, "kill" if kill else "now" if now else "checkpoint")
    if not as_json:
        say(f"stopping {directory.id} …", error=True)
    try:
        state = wait_until_ended(directory)
    except KeyboardInterrupt:
        say(f"{directory.id} goes on stopping; llmtui show {directory.id} tells when it has ended", error=True)
        raise typer.Exit(130) from None
    if as_json:
        say_json(values(run_row(state, directory)))
        return
    cause = f": {state.cause}" if state.cause else ""
    gone = "" if "every process is gone" in cause else "; every process is gone"
    say(f"{directory.id} {state.state} at step {state.step}{cause}{gone}")
    if state.state in RESUMABLE_STATES:
        say(f"to go on: llmtui resume {directory.id}")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(stop)
