"""`llmtui attach RUN`: the screen on a run."""

from __future__ import annotations

import typer

from llmtui.tui.commands.options import Run


def attach(run: Run) -> None:
    """Open the screen on a run; any number of terminals may."""
    from llmtui.core.home import home
    from llmtui.tui.app import run_app

    raise typer.Exit(run_app(home(), open_run=run))


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(attach)
