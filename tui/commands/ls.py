"""`llmtui ls`: the runs."""

from __future__ import annotations

import time
from typing import Any

import typer

from llmtui.core import words
from llmtui.tui.commands.options import Json
from llmtui.tui.commands.output import columns, say, say_json


def ls(as_json: Json = False) -> None:
    """The runs, newest last."""
    rows = list(_rows())
    if as_json:
        say_json(rows)
        return
    if not rows:
        say("no runs yet. To start one: llmtui run demo")
        return
    now = time.time()
    table = [
        [row["id"], row["state"], _progress(row), words.number(row.get("loss")), words.rate(row.get("it_per_second")),
         words.duration(row.get("eta_seconds")) if row.get("alive") else "", words.clock(row.get("created"), now)]
        for row in rows
    ]  # fmt: skip
    say(columns(("run", "state", "steps", "loss", "it/s", "left", "created"), table, right=(2, 3, 4, 5)))


def _progress(row: dict[str, Any]) -> str:
    return f"{words.count(row.get('step'))}/{words.count(row.get('total_steps'))}"


def _rows() -> list[dict[str, Any]]:
    from llmtui.core.errors import LlmtuiError
    from llmtui.core.home import runs_folder
    from llmtui.core.runs.facts import run_row
    from llmtui.core.runs.reader import read_state, run_directories

    rows = []
    for directory in run_directories(runs_folder()):
        try:
            rows.append(run_row(read_state(directory), directory))
        except (LlmtuiError, OSError) as error:
            rows.append({"id": directory.id, "state": "damaged", "cause": str(error), "directory": str(directory.path)})
    return rows


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(ls)
