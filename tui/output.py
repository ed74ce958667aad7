"""The end of a run's `output.log`, as lines: carriage returns and escape codes played out, not shown raw."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from llmtui.core.text import safe_text

_TAIL_BYTES: Final = 128 * 1024
_LINES: Final = 2000
# CSI and OSC sequences: colours and cursor moves of progress bars; they say nothing in a text.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")


class OutputTail:
    """Follows one file; `read` gives its last lines when they have changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] = (-1, -1, -1)
        self.lines: tuple[str, ...] = ()
        self.skipped_bytes = 0

    def read(self) -> bool:
        """Look again; whether `lines` changed. A file that is missing has no lines.

        However fast it grows, at most 128 KiB are read.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            seen = (0, 0, 0)
            changed, self._seen = seen != self._seen and bool(self.lines), seen
            self.lines = () if changed else self.lines
            return changed
        try:
            status = os.fstat(descriptor)
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if seen == self._seen:
                return False
            self._seen = seen
            start = max(0, status.st_size - _TAIL_BYTES)
            data = os.pread(descriptor, _TAIL_BYTES, start)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        if start:
            data = data[data.find(b"\n") + 1 :]
        self.skipped_bytes = start
        self.lines = tuple(lines_of(data.decode("utf-8", "replace"))[-_LINES:])
        return True


def lines_of(text: str) -> list[str]:
    """Lines as a terminal would leave them: `\\r` goes back to the start of the line, backspace a step back."""
    lines = []
    for raw in text.split("\n"):
        line = _backspaces(_ESCAPES.sub("", raw)) if "\b" in raw else _ESCAPES.sub("", raw)
        lines.append(safe_text(_returns(line) if "\r" in line else line))
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _returns(line: str) -> str:
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()


def _backspaces(line: str) -> str:
    out: list[str] = []
    for character in line:
        if character == "\b":
            if out:
                out.pop()
        else:
            out.append(character)
    return "".join(out)
