"""`llmtui resume RUN`: go on from the last good checkpoint, or fork."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from llmtui.core.errors import UsageError
from llmtui.tui.commands.options import Json, Run, Sets, the_run_at
from llmtui.tui.commands.output import say, say_json


def resume(
    run: Run,
    from_step: Annotated[int | None, typer.Option("--from", metavar="STEP", help="Fork from this checkpoint.")] = None,
    sets: Sets = None,
    detach: Annotated[bool, typer.Option("--detach", help="Print the id and return; the run goes on.")] = False,
    as_json: Json = False,
) -> None:
    """Continue a run. --from, RUN@STEP and --set fork a new run, so that nothing is written over."""
    from llmtui.core.process.interrupting import StartedAnyway
    from llmtui.core.process.launch import fork_run, resume_run
    from llmtui.tui.commands.following import detached, follow

    directory, at_step = the_run_at(run, as_json, destructive=True)
    if from_step is not None and at_step not in (None, from_step):
        raise UsageError(f"--from {from_step} and @{at_step} name two checkpoints", place=run, hint="use one of them")
    step, old = from_step if from_step is not None else at_step, directory
    try:
        if step is not None or sets:
            directory = fork_run(directory, from_step=step, sets=sets or (), command=["llmtui", *sys.argv[1:]])
            if not as_json:
                say(f"{directory.id} is a new run that goes on from {old.id}", error=True)
        else:
            resume_run(directory)
    except StartedAnyway as started:
        raise typer.Exit(detached(started.directory, as_json)) from None
    except KeyboardInterrupt:
        say("nothing was started", error=True)
        raise typer.Exit(130) from None
    if not detach:
        raise typer.Exit(follow(directory, as_json, from_now=directory == old))
    if as_json:
        say_json({"id": directory.id, "directory": str(directory.path)})
    else:
        say(directory.id)


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(resume)
