"""Outside text made harmless: control characters become visible before they reach a terminal."""

from __future__ import annotations

import re
from typing import Final

# C0 and C1 controls, DEL, line/paragraph separators, bidi controls and marks, lone surrogates.
# Filters that forget 8-bit C1 are bypassed by it: a terminal takes U+009B as CSI.
_CONTROL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe_text(text: str, *, newlines: bool = False) -> str:
    """Return `text` with every control character written out (``\\x1b``).

    Args:
        text: anything from outside: data, logs, model output, names, paths.
        newlines: keep ``\\n``; otherwise it is written out too. Tabs become four spaces.
    """
    if _CONTROL.search(text) is None:
        return text
    text = text.replace("\t", "    ")
    if not newlines:
        return _CONTROL.sub(_visible, text)
    return "\n".join(_CONTROL.sub(_visible, line) for line in text.split("\n"))
