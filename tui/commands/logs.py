"""`llmtui logs RUN`: the worker's raw output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from llmtui.tui.commands.options import Run, the_run
from llmtui.tui.commands.output import say

_BLOCK_BYTES: Final = 1 << 18
_POLL_SECONDS: Final = 0.3


def logs(
    run: Run,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run ends.")] = False,
) -> None:
    """What the worker printed: tracebacks are here."""
    from llmtui.core.runs.reader import liveness

    directory = the_run(run, as_json=False)
    offset, rest, empty = 0, b"", True
    try:
        while True:
            alive = follow and liveness(directory).any  # asked first: what is printed before the end is read after it
            for end, block in _blocks(directory.output, offset):
                offset = end
                *lines, rest = (rest + block).split(b"\n")
                if lines:
                    empty = False
                    say("\n".join(_readable(line) for line in lines))
            if not alive:
                break
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if rest:
        say(_readable(rest))
    elif empty:
        say(f"{directory.id} has printed nothing", error=True)


def _blocks(path: Path, offset: int) -> Iterator[tuple[int, bytes]]:
    """What is new from an offset on: the offset after it, and the bytes."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(offset if offset <= size else 0)  # its middle was cut out, so it is shorter than before
            while block := file.read(_BLOCK_BYTES):
                yield file.tell(), block
    except FileNotFoundError:
        return


def _readable(line: bytes) -> str:
    """Of a line that was written over with carriage returns, what stood there last."""
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(logs)
