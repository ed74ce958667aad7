"""`llmtui stop RUN`: end a run, and wait until it really has ended."""

from __future__ import annotations

from typing import Annotated

import typer

from llmtui.core.errors import UsageError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def stop(
    run: Run,
    now: Annotated[bool, typer.Option("--now", help="Without a checkpoint.")] = False,
    kill: Annotated[bool, typer.Option("--kill", help="At once, by force.")] = False,
    as_json: Json = False,
) -> None:
    """Stop after this step with a checkpoint, and wait until every process is gone."""
    from llmtui.core.process.stop import stop as ask
    from llmtui.core.process.stop import wait_until_ended
    from llmtui.core.runs.facts import run_row

    if now and kill:
        raise UsageError("--now and --kill exclude each other", hint="use one of them")
    directory, _ = the_run(run, as_json, destructive=True)
    ask(directory, "kill" if kill else "now" if now else "checkpoint")
    if not as_json:
        say(f"stopping {directory.id} …", error=True)
    try:
        state = wait_until_ended(directory)
    except KeyboardInterrupt:
        say("it goes on stopping", error=True)
        raise typer.Exit(130) from None
    if as_json:
        say_json(run_row(state, directory))
        return
    say(f"{state.state}: {state.cause or f'step {state.step}'}; every process of it is gone")
    if state.state in ("stopped", "interrupted"):
        say(f"to go on: llmtui resume {directory.id}")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(stop)
