"""`llmtui fetch PRESET`: download and check everything a run will need, now."""

from __future__ import annotations

from typing import Annotated

import typer

from llmtui.core import words
from llmtui.tui.commands.options import Json, Sets
from llmtui.tui.commands.output import say, say_json
from llmtui.tui.commands.progress import progress


def fetch(
    preset: Annotated[str, typer.Argument(help="A preset's name, or a path ending in .yaml.")],
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Download and check everything a run needs.

    Model, tokenizer and data are brought into the local cache, GGUF files converted, rows made into tokens. A download
    that broke off goes on where it was.
    """
    from llmtui.core.preset import load_preset
    from llmtui.core.process.preparing import fetch_all

    loaded = load_preset(preset, sets or ())
    with progress(silent=as_json) as show:
        here = fetch_all(loaded, show)
    if as_json:
        say_json(here)
        return
    model, data = here["model"], here["data"]
    say(f"model  {model['name']}: {words.size(model['bytes'])} in {model['path']}")
    say(f"data   {words.count(data['train_rows'])} rows to train on, {words.count(data['tokens'])} tokens, "
        f"{words.count(data['val_rows'])} held out")  # fmt: skip
    for note in data["notes"]:
        say(f"note   {note}")
    say(f"all is here: llmtui run {loaded.name}")


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(fetch)
