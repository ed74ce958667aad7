"""What a template makes of an example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llmtui.core.data.rows import Example

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text, the character spans of what is to be learned, whether an end token follows, and the row's place."""

    text: str
    spans: tuple[Span, ...]
    append_eos: bool
    place: str = ""


Render = Callable[[Example], Rendered]
