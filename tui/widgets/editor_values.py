"""Values as they are typed and shown in the editor: YAML on one line, never a raw control character."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from llmtui.core.text import safe_text

# What YAML 1.2 reads as something other than text when it stands unquoted.
_NOT_TEXT: Final = re.compile(
    r"(?i:null|~|true|false|[-+]?(\.inf|\.nan))|[-+]?(\d[\d_]*)?\.?\d*(e[-+]?\d+)?|0[xo][0-9a-f_]+"
)
# Inside [ ] and { } these end or begin something.
_NEEDS_QUOTES: Final = re.compile(r"^[\s\-?:,\[\]{}#&*!|>'\"%@`]|[,\[\]{}]|: |:$| #|\s$")
_QUOTED: Final = re.compile(r"""^\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*$""")


class ValueTextError(ValueError):
    """The typed text is not YAML: what is wrong with it, in one sentence."""


def flow_text(value: Any) -> str:
    """One line of YAML for any value of a preset."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow_text(key)}: {flow_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    return _scalar(str(value))


def text_of(value: Any) -> str:
    """A value as the editor shows it and as `value_of` reads it back. Text stands bare where it can."""
    if isinstance(value, str):
        bare = bool(value) and value == value.strip() and safe_text(value) == value and value[0] not in "\"'"
        return value if bare and not _is_null(value) else quoted(value)
    return flow_text(value)


def value_of(text: str, *, only_text: bool) -> Any:
    """What a typed text means.

    Args:
        text: as typed; empty means null.
        only_text: the field takes text (or null) and nothing else, so that `012`, `yes` and `[a` are text.

    Raises:
        ValueTextError: the text is not YAML.
    """
    stripped = text.strip()
    if not stripped or _is_null(stripped):
        return None
    if only_text and not _QUOTED.match(stripped):
        if stripped[0] in "\"'":
            raise ValueTextError(f"text that begins with {stripped[0]} ends with it")
        return stripped
    try:
        return YAML(typ="rt", pure=True).load(stripped)  # keeps how a number was written
    except MarkedYAMLError as error:
        raise ValueTextError(_sentence(error, stripped)) from error
    except (YAMLError, ValueError) as error:
        raise ValueTextError(safe_text(str(error).splitlines()[0])) from error


def quoted(text: str) -> str:
    """Text in double quotes, every control and bidi character written as an escape that YAML reads back."""
    out = json.dumps(text, ensure_ascii=False)
    if safe_text(out) == out:
        return out
    return "".join(c if safe_text(c) == c else f"\\u{ord(c):04x}" for c in out)


def _scalar(value: str) -> str:
    plain = (
        bool(value) and not _NOT_TEXT.fullmatch(value) and not _NEEDS_QUOTES.search(value) and safe_text(value) == value
    )
    return value if plain else quoted(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(float(value))
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text


def _is_null(text: str) -> bool:
    return text in ("null", "~", "Null", "NULL")


def _sentence(error: MarkedYAMLError, text: str) -> str:
    problem = safe_text(str(error.problem or error.context or "not YAML"))
    if text.count("[") > text.count("]"):
        return "a list ends with ]"
    if text.count("{") > text.count("}"):
        return "a map ends with }"
    mark = error.problem_mark
    return f"not YAML at character {mark.column + 1}: {problem}" if mark is not None else f"not YAML: {problem}"
