"""`llmtui export RUN`: the hand-over."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from llmtui.core.errors import MachineError
from llmtui.tui.commands.options import Run, the_run
from llmtui.tui.commands.output import say


class Format(str, Enum):
    """What to write."""

    md = "md"
    json = "json"


def export(
    run: Run,
    form: Annotated[Format, typer.Option("--format", help="md for people, json for programs.")] = Format.md,
    out: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there; else print.")] = None,
) -> None:
    """The summary of a run: settings, versions, GPU, speeds, memory, losses, answers, how to use it."""
    from llmtui.core.files import write_atomically
    from llmtui.core.runs.exporting import export_text

    directory, _ = the_run(run, as_json=form is Format.json)
    text = export_text(directory, form.value)
    if out is None:
        say(text.rstrip("\n"))
        return
    try:
        write_atomically(out.absolute(), text.encode(), mode=0o644)
    except OSError as error:
        raise MachineError(
            f"the file cannot be written: {error.strerror}", place=str(out), hint="name another"
        ) from error
    say(str(out), error=True)


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(export)
