"""Plain text to rows: one a line, one a paragraph, or the whole file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TextIO

from llmtui.core.data.records import Record

Cut = Literal["line", "paragraph", "file"]


def plain_rows(file: TextIO, name: str, cut: Cut) -> Iterator[Record]:
    """Rows with one column, `text`.

    Lines end at `\\n` (a `\\r` before it belongs to the end), so U+2028 and U+0085 stay inside. Paragraphs are
    separated by blank lines and keep the line ends within; a file keeps everything.

    Args:
        file: opened with lines that keep what ends them.
    """
    if cut == "file":
        if (text := file.read()).strip():
            yield Record(name, {"text": text})
    elif cut == "paragraph":
        yield from _paragraphs(file, name)
    else:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield Record(f"{name}:{number}", {"text": _without_end(line)})


def _paragraphs(file: TextIO, name: str) -> Iterator[Record]:
    lines: list[str] = []
    begin = 0
    for number, line in enumerate(file, 1):
        if line.strip():
            begin = begin if lines else number
            lines.append(line)
        elif lines:
            yield Record(f"{name}:{begin}", {"text": _without_end("".join(lines))})
            lines = []
    if lines:
        yield Record(f"{name}:{begin}", {"text": _without_end("".join(lines))})


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
