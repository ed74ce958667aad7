"""`llmtui export RUN`: the hand-over."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from llmtui.core.errors import MachineError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


class Format(StrEnum):
    """What to write."""

    md = "md"
    json = "json"


def export(
    run: Run,
    form: Annotated[Format, typer.Option("--format", help="md for people, json for programs.")] = Format.md,
    out: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there; else print.")] = None,
    as_json: Json = False,
) -> None:
    """The whole summary of a run, to hand over.

    Settings, versions, GPU, speeds, memory, losses, answers, and how to use the result.
    """
    from llmtui.core.files import write_atomically
    from llmtui.core.runs.exporting import export_text

    form = Format.json if as_json and out is None else form
    directory = the_run(run, as_json or form is Format.json)
    text = export_text(directory, "json" if form is Format.json else "md")
    if out is None:
        say_json(json.loads(text)) if form is Format.json else say(text.rstrip("\n"))
        return
    try:
        write_atomically(out.expanduser().absolute(), text.encode("utf-8", "backslashreplace"), mode=0o644)
    except OSError as error:
        raise MachineError(f"the file cannot be written: {error.strerror}", place=str(out),
                           hint="name another with -o") from error  # fmt: skip
    if as_json:
        say_json({"id": directory.id, "format": str(form), "path": str(out)})
    else:
        say(f"{directory.id} is written to {out}")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(export)
