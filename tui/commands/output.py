"""What commands print: text for people, one JSON document for programs, errors with their place and cure.

Text from outside is made safe here; a terminal without UTF-8 gets ASCII; a reader that leaves (`| head`) is no error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

import typer

from llmtui.core.errors import LlmtuiError, MachineError
from llmtui.core.text import safe_text

_ASCII: Final = str.maketrans({
    "–": "-", "—": "-", "→": "->", "≈": "~", "×": "x", "÷": "/", "…": "...", "°": "", "⏎": "|", "α": "a", "≤": "<=",
    "≥": ">=", "·": "-", "“": '"', "”": '"', "’": "'",
})  # fmt: skip


class _OutputLost(OSError):
    """stdout or stderr cannot be written: a full disk behind a redirection, a terminal that has gone."""


def plain(text: str) -> str:
    """Text that any terminal can show: no control characters, and ASCII where the locale has no UTF-8."""
    clean = safe_text(text, newlines=True)
    if clean.isascii() or _has_utf8():
        return clean
    return clean.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def _has_utf8() -> bool:
    """Whether both the locale and the stream carry UTF-8; in a POSIX locale Python's streams do so all the same."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "unset"
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return named not in ("C", "POSIX") and encoding.lower().replace("-", "") == "utf8"


def say(text: str = "", *, error: bool = False) -> None:
    """One piece of text and a newline, safe for any terminal."""
    _write(sys.stderr if error else sys.stdout, plain(text) + "\n")


def say_coloured(text: str) -> None:
    """Text that was made plain before colours of ours were put into it."""
    _write(sys.stdout, text + "\n")


def colours() -> bool:
    """Whether stdout is a terminal that shows colours, and the user wants them."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"


def say_json(value: Any, *, line: bool = False) -> None:
    """One JSON document; `line` puts it on one line, for JSON lines."""
    text = json.dumps(value, ensure_ascii=not _has_utf8(), indent=None if line else 1)
    # A lone surrogate (a file name that is no UTF-8) is written as JSON writes it.
    _write(sys.stdout, text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


def say_error(error: LlmtuiError, as_json: bool) -> None:
    """An error: `{"error": …}` on stdout for programs, its sentence on stderr for people."""
    with suppress(typer.Exit):  # the exit code is the error's, whether or not anybody reads it
        if as_json:
            say_json({"error": error.as_dict()})
        else:
            say(str(error), error=True)


def width(text: str) -> int:
    """Terminal cells of a text (wide characters take two)."""
    from rich.cells import cell_len

    return cell_len(text)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned by terminal cells.

    Args:
        right: indices of columns set to the right.
    """
    cells = [[plain(cell).replace("\n", " ") for cell in row] for row in [list(header), *rows]]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        parts = []
        for i, cell in enumerate(row):
            space = " " * (widths[i] - width(cell))
            parts.append(space + cell if i in right else cell + space)
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def say_system_error(error: OSError, as_json: bool) -> int:
    """What the system refused (a read-only or full disk, a folder where a file should be); the exit code."""
    lost = isinstance(error, _OutputLost)
    for stream in (sys.stdout, sys.stderr):
        try:
            _write(stream, "")  # what the parser left in it
        except OSError:
            lost = True
        except typer.Exit:
            continue
    reason = error.strerror or str(error) or type(error).__name__
    place = "" if error.filename is None else os.fsdecode(error.filename)
    told = MachineError(f"the output cannot be written: {reason}" if lost else reason, place=place,
                        hint="check the disk, and who may read and write there")  # fmt: skip
    with suppress(OSError):
        say_error(told, as_json and not lost)
    return told.exit_code


def _write(stream: TextIO | None, text: str) -> None:
    """Write at once. When nobody reads any more (`| head`), the command ends without a word: a run goes on."""
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        sink = os.open(os.devnull, os.O_WRONLY)  # what is still buffered, and the interpreter's own last flush
        os.dup2(sink, stream.fileno())
        os.close(sink)
        if not isinstance(error, BrokenPipeError):
            raise _OutputLost(*error.args) from error
        raise typer.Exit(0) from None
