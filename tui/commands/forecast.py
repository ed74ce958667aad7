"""`llmtui forecast PRESET`: will it fit, and what will it take?"""

from __future__ import annotations

from typing import Annotated

import typer

from llmtui.tui.commands.options import Json, Sets
from llmtui.tui.commands.output import say, say_json


def forecast(
    preset: Annotated[str, typer.Argument(help="A preset's name, or a path ending in .yaml.")],
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Whether it fits: memory by part, steps, disk.

    By arithmetic alone (marked ≈): nothing is loaded or downloaded.
    """
    from llmtui.core.forecast import forecast as work_out
    from llmtui.core.forecast import forecast_lines
    from llmtui.core.preset import load_preset, resolved_preset

    loaded = load_preset(preset, sets or ())
    found = work_out(resolved_preset(loaded), loaded.folder)
    if as_json:
        import dataclasses

        say_json(dataclasses.asdict(found))
    else:
        for line in forecast_lines(found):
            say(line)


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(forecast)
