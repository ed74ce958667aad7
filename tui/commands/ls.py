"""`llmtui ls`: the runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import typer

from llmtui.core import words
from llmtui.core.runs.facts import RunRow
from llmtui.tui.commands.options import Json
from llmtui.tui.commands.output import columns, say, say_json


def ls(as_json: Json = False) -> None:
    """The runs, newest last."""
    from llmtui.core.runs.facts import as_json as values

    rows = list(_rows())
    if as_json:
        say_json([values(row) if isinstance(row, RunRow) else row for row in rows])
        return
    if not rows:
        say("no runs yet. To start one: llmtui run demo")
        return
    now = time.time()
    table = [
        _cells(row, now) if isinstance(row, RunRow) else [row["id"], f"damaged: {row['cause']}", *[""] * 5]
        for row in rows
    ]
    say(columns(("run", "state", "steps", "loss", "it/s", "left", "created"), table, right=(2, 3, 4, 5)))


def _cells(row: RunRow, now: float) -> list[str]:
    left = words.duration(row.eta_seconds) if row.alive else ""
    speed = row.it_per_second if row.alive else row.overall_it_per_second
    return [row.id, row.state, f"{words.count(row.step)}/{words.count(row.total_steps)}", words.number(row.loss),
            words.rate(speed), left, words.clock(row.created, now)]  # fmt: skip


def _rows() -> Iterator[RunRow | dict[str, str]]:
    from llmtui.core.errors import LlmtuiError
    from llmtui.core.home import runs_folder
    from llmtui.core.runs.facts import run_row
    from llmtui.core.runs.reader import read_state, run_directories

    for directory in run_directories(runs_folder()):
        try:
            yield run_row(read_state(directory), directory)
        except (LlmtuiError, OSError) as error:
            yield {"id": directory.id, "state": "damaged", "cause": str(error), "directory": str(directory.path)}


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(ls)
