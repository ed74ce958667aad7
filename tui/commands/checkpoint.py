"""`llmtui checkpoint RUN`: save now, go on."""

from __future__ import annotations

import typer

from llmtui.core.errors import RefusedError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def checkpoint(run: Run, as_json: Json = False) -> None:
    """Save a checkpoint after this step; the run goes on."""
    from llmtui.core.process.stop import checkpoint as ask
    from llmtui.core.process.stop import wait_for_answer

    directory = the_run(run, as_json)
    request = ask(directory)
    try:
        answer = wait_for_answer(directory, request)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if answer is None:
        raise RefusedError("the run ended before it could save", place=directory.id,
                           hint=f"llmtui show {directory.id} says how")  # fmt: skip
    if not answer.accepted:
        raise RefusedError(answer.text, place=directory.id, hint=f"llmtui logs {directory.id} shows more")
    if as_json:
        say_json({"id": directory.id, "text": answer.text})
    else:
        say(f"{directory.id}: {answer.text}")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(checkpoint)
