"""Following a run in plain text or JSON lines until it ends; Ctrl-C detaches."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import typer

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.facts import as_json as values
from llmtui.core.runs.facts import run_row
from llmtui.core.runs.reader import RunReader
from llmtui.core.runs.state import RunState
from llmtui.tui.commands.news import News, sentence
from llmtui.tui.commands.output import say, say_json

_POLL_SECONDS: Final = 0.25
DETACHED: Final = 130


def follow(directory: RunDirectory, as_json: bool, *, from_now: bool = False) -> int:
    """Print what happens until no process of the run lives.

    Args:
        from_now: leave out what happened before (a resumed run's earlier attempts).

    Returns:
        The run's exit code; 130 when detached.
    """
    reader = RunReader(directory)
    news = News()
    try:
        if from_now:
            news.pass_over(reader.poll())
        while True:
            state = reader.poll()
            for kind, item in news.of(state):
                if as_json:
                    say_json({"type": kind, **item}, line=True)
                else:
                    say(sentence(kind, item))
            if state.final and not state.alive:
                break
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        return detached(directory, as_json)
    except typer.Exit:  # nobody reads any more, and how the run ends is not known
        return DETACHED
    return _ended(state, directory, as_json)


def detached(directory: RunDirectory, as_json: bool) -> int:
    """Say that the run goes on without this terminal; the exit code of that."""
    if as_json:
        say_json({"type": "detached", "id": directory.id}, line=True)
    else:
        say(f"\ndetached: {directory.id} goes on without this terminal")
        say(f"  to come back   llmtui attach {directory.id}\n  to end it      llmtui stop {directory.id}")
    return DETACHED


def _ended(state: RunState, directory: RunDirectory, as_json: bool) -> int:
    code = state.exit_code if state.exit_code is not None else 1
    with suppress(typer.Exit):  # the exit code is the run's, whether or not anybody reads this
        _say_end(state, directory, as_json, code)
    return code


def _say_end(state: RunState, directory: RunDirectory, as_json: bool, code: int) -> None:
    if as_json:
        say_json({"type": "end", **values(run_row(state, directory))}, line=True)
        return
    failed = code not in (0, 4)
    cause = f": {state.cause}" if state.cause else ""
    say(f"{directory.id} {state.state} at step {state.step}{cause}", error=failed)
    if state.hint:
        say(f"  to do     {state.hint}", error=failed)
    if state.result is not None:
        say(f"  result    {directory.path / state.result.path}")
    if (directory.path / "summary.md").is_file():
        say(f"  summary   {directory.path / 'summary.md'}")
