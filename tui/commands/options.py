"""Options and arguments that several commands share, and finding the run a user means."""

from __future__ import annotations

from typing import Annotated

import typer

from llmtui.core.errors import UsageError
from llmtui.core.runs.directory import RunDirectory
from llmtui.tui.commands.output import say

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="An id, a --name, a preset (its latest), or last.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as training.learning_rate=1e-4. Repeatable."),
]


def the_run(reference: str, as_json: bool, *, destructive: bool = False) -> RunDirectory:
    """The run; says in a line which one a name means.

    Raises:
        UsageError: there is no such run, or a checkpoint of it is named.
        RefusedError: it is ambiguous and `destructive` is asked.
    """
    directory, step = the_run_at(reference, as_json, destructive=destructive)
    if step is not None:
        raise UsageError("this command is for whole runs, not for one checkpoint", place=reference,
                         hint=f"write {reference.rpartition('@')[0]}")  # fmt: skip
    return directory


def the_run_at(reference: str, as_json: bool, *, destructive: bool = False) -> tuple[RunDirectory, int | None]:
    """The run and the step after `@`; says in a line which run a name means.

    Raises:
        UsageError: there is no such run.
        RefusedError: it is ambiguous and `destructive` is asked.
    """
    from llmtui.core.home import runs_folder
    from llmtui.core.runs.reader import find_run

    directory, step, said = find_run(runs_folder(), reference, destructive=destructive)
    if said and not as_json:
        say(said, error=True)
    return directory, step
