"""`llmtui merge RUN -o DIR`: the adapter merged into its base."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from llmtui.core.errors import LlmtuiError, RefusedError, UsageError
from llmtui.tui.commands.options import Json, Run, the_run
from llmtui.tui.commands.output import say, say_json


def merge(
    run: Run,
    out: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder.")],
    as_json: Json = False,
) -> None:
    """Merge a run's adapter into its base model, as safetensors; checked to give the same tokens."""
    directory, _ = the_run(run, as_json)
    if out.exists():
        raise RefusedError("the folder exists already", place=str(out), hint="name a new one")
    if not as_json:
        say("merging (the base is loaded unquantised) …", error=True)
    command = [sys.executable, "-m", "llmtui.core.worker.merge", str(directory.path), str(out.absolute())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    answer = _last_json(done.stdout)
    if answer is None:
        last = done.stderr.strip().splitlines()
        raise LlmtuiError(f"merging failed: {last[-1] if last else f'exit code {done.returncode}'}", place=directory.id)
    if "error" in answer:
        wrong = answer["error"]
        kind = RefusedError if wrong["kind"] == "refused" else UsageError if wrong["kind"] == "usage" else LlmtuiError
        raise kind(wrong["message"], place=wrong["place"], hint=wrong["hint"])
    if as_json:
        say_json(answer)
    else:
        say(f"{answer['path']} ({answer['dtype']}; the same tokens on {answer['checked_prompts']} prompts as before)")


def _last_json(text: str) -> dict[str, Any] | None:
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
