"""How far a child is, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

from llmtui.core import words
from llmtui.tui.commands.output import plain, say

_SHOW_SECONDS: Final = 0.25


@contextmanager
def progress(silent: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """What shows progress while it is open; Ctrl-C ends the command with 130."""
    shown = Progress(silent)
    try:
        yield shown.show
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        shown.end()


class Progress:
    """How far the child is, on stderr: one line written over on a terminal, one line for each stage elsewhere."""

    def __init__(self, silent: bool) -> None:
        self._silent, self._over = silent, sys.stderr.isatty()
        self._stage, self._shown, self._width = "", 0.0, 0
        self._download: tuple[float, int] | None = None  # when it began, and from which byte

    def show(self, stage: str, done: int, total: int | None) -> None:
        """At most four times a second within a stage."""
        now, new = time.monotonic(), stage != self._stage
        if self._silent or not (new or (self._over and now - self._shown > _SHOW_SECONDS)):
            return
        self._stage, self._shown = stage, now
        if not self._over:
            say(f"{stage} …", error=True)
            return
        text = plain(self._words(stage, done, total))
        text = text.replace("\n", " ")
        sys.stderr.write("\r" + text + " " * (self._width - len(text)))
        sys.stderr.flush()
        self._width = len(text)

    def _words(self, stage: str, done: int, total: int | None) -> str:
        """How far it is; of a download also how long it takes."""
        if stage != "downloading":
            return f"{stage} {words.count(done)} of {words.count(total)}" if total else f"{stage} {done or '…'}"
        if self._download is None or done < self._download[1]:
            self._download = time.monotonic(), done
        spent, new = time.monotonic() - self._download[0], done - self._download[1]
        left = ""
        if total and new > 0 and spent > 1:
            left = f", {words.size(int(new / spent))}/s, {words.duration((total - done) * spent / new)} left"
        return f"{stage} {words.size(done)} of {words.size(total)}{left}"

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
