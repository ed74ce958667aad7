"""What commands print: text for people, one JSON document for programs, errors with their place and cure."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from llmtui.core.errors import LlmtuiError
from llmtui.core.text import safe_text


def say(text: str = "", *, error: bool = False) -> None:
    """One piece of text, safe for any terminal: no control characters, no character it cannot encode."""
    stream = sys.stderr if error else sys.stdout
    clean = safe_text(text, newlines=True)
    encoding = stream.encoding or "ascii"
    stream.write(clean.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def say_json(value: Any) -> None:
    """One JSON document on one line when followed, indented otherwise."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=None if isinstance(value, str) else 1) + "\n")
    sys.stdout.flush()


def say_json_line(value: Any) -> None:
    """One line of JSON lines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def say_error(error: LlmtuiError, as_json: bool) -> None:
    """An error: `{"error": …}` on stdout for programs, one sentence on stderr for people."""
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
    cells = [[safe_text(cell) for cell in row] for row in [list(header), *rows]]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        parts = []
        for i, cell in enumerate(row):
            space = " " * (widths[i] - width(cell))
            parts.append(space + cell if i in right else cell + space)
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def quiet_pipe() -> None:
    """A reader that left (`| head`) is no error."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
