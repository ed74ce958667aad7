"""`llmtui rm RUN`: delete an ended run with everything in it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from llmtui.core import words
from llmtui.core.errors import RefusedError, UsageError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import plain, say, say_json


def rm(
    run: Run,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete an ended run: its checkpoints, result and log."""
    from llmtui.core.files import folder_bytes
    from llmtui.core.runs.deleting import check_deletable, delete_run

    directory = the_run(run, as_json, destructive=True)
    check_deletable(directory)
    size = folder_bytes(directory.path)
    if not yes:
        _ask(directory.id, _name(directory.id), size, as_json)
    delete_run(directory)
    if as_json:
        say_json({"id": directory.id, "bytes": size})
    else:
        say(f"deleted {directory.id} ({words.size(size)})")


def _name(run_id: str) -> str:
    """The name without the time: what a person remembers. It works for a damaged run too."""
    return run_id.split("-", 2)[-1]


def _ask(run_id: str, name: str, size: int, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise UsageError("rm asks on a terminal only", hint="add --yes")
    say(f"This deletes {run_id} ({words.size(size)}) with its checkpoints and its result.")
    if typer.prompt(plain(f'Type "{name}" to delete it'), default="", show_default=False) != name:
        raise RefusedError("nothing was deleted", hint=f"type {name} to delete it")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(rm)
