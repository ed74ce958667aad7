"""`llmtui merge RUN`: the adapter into its base, in a child that imports torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from llmtui.core.errors import DataError, LlmtuiError, MachineError, RefusedError, RunFailedError, UsageError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json

_KINDS: Final = {kind.kind: kind for kind in (UsageError, DataError, MachineError, RefusedError)}


def merge(
    run: Run,
    out: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder.")],
    as_json: Json = False,
) -> None:
    """Merge a run's adapter into its base, as safetensors.

    The merged model is checked to give the same tokens as base and adapter.
    """
    directory = the_run(run, as_json)
    out = out.expanduser().absolute()
    if out.exists():
        raise RefusedError("the folder exists already", place=str(out), hint="name a new one")
    if not as_json:
        say(f"merging {directory.id}: its base is loaded unquantised …", error=True)
    command = [sys.executable, "-P", "-m", "llmtui.core.worker.merge", str(directory.path), str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    answer = _answer(done.stdout)
    if answer is None:
        last = done.stderr.strip().splitlines()
        raise RunFailedError(f"merging failed: {last[-1] if last else f'exit code {done.returncode}'}",
                             place=directory.id, hint="try it on a machine with more memory")  # fmt: skip
    if "error" in answer:
        wrong = answer["error"]
        kind: type[LlmtuiError] = _KINDS.get(wrong["kind"], RunFailedError)
        raise kind(wrong["message"], place=wrong["place"], hint=wrong["hint"])
    if as_json:
        say_json(answer)
    else:
        say(f"{answer['path']} ({answer['dtype']}; the same tokens on {answer['checked_prompts']} prompts as before)")


def _answer(text: str) -> dict[str, Any] | None:
    """The last line that is a JSON object; libraries may print around it."""
    for line in reversed(text.splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(merge)
