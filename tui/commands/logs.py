"""`llmtui logs RUN`: the worker's raw output."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from llmtui.tui.commands.options import Run, the_run
from llmtui.tui.commands.output import say

_BLOCK_BYTES = 1 << 16


def logs(
    run: Run,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run ends.")] = False,
) -> None:
    """What the worker printed (tracebacks are here)."""
    from llmtui.core.runs.reader import liveness

    directory, _ = the_run(run, as_json=False)
    offset, rest = 0, b""
    while True:
        alive = follow and liveness(directory).any
        while True:
            try:
                size = directory.output.stat().st_size
                offset = 0 if size < offset else offset  # its middle was cut out
                with directory.output.open("rb") as file:
                    file.seek(offset)
                    block = file.read(_BLOCK_BYTES)
            except FileNotFoundError:
                block = b""
            if not block:
                break
            offset += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                say(_readable(line))
        if not alive:
            break
        time.sleep(0.3)
    if rest:
        say(_readable(rest))


def _readable(line: bytes) -> str:
    """Of a line that was written over with carriage returns, what stood there last."""
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(logs)
