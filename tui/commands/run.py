"""`llmtui run PRESET`: check everything, start, follow."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from llmtui.tui.commands.options import Json, Sets
from llmtui.tui.commands.output import say, say_json


def run(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a path ending in .yaml.")],
    sets: Sets = None,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; the preset's otherwise.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Print the id and return; the run goes on.")] = False,
    as_json: Json = False,
) -> None:
    """Start a run and follow it. Ctrl-C detaches: the run goes on."""
    from llmtui.core.preset import load_preset
    from llmtui.core.process.interrupting import StartedAnyway
    from llmtui.core.process.launch import start_run
    from llmtui.core.runs.directory import clean_name
    from llmtui.tui.commands.following import detached, follow

    name = None if name is None else clean_name(name)
    loaded = load_preset(preset, sets or ())
    if not as_json:
        for warning in loaded.warnings:
            say(f"note: {warning}", error=True)
        _say_machine()
    try:
        directory = start_run(loaded, name=name, command=["llmtui", *sys.argv[1:]])
    except StartedAnyway as started:
        raise typer.Exit(detached(started.directory, as_json)) from None
    except KeyboardInterrupt:
        say("nothing was started", error=True)
        raise typer.Exit(130) from None
    if detach:
        if as_json:
            say_json({"id": directory.id, "directory": str(directory.path)})
        else:
            say(directory.id)
        return
    raise typer.Exit(follow(directory, as_json))


def _say_machine() -> None:
    """Does this torch fit the driver and the card? Said until it does."""
    from llmtui.core.hardware.fit import machine_sentence

    sentence = machine_sentence()
    if sentence:
        say(f"note: {sentence}", error=True)


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(run)
