"""Values as people write them, turned into what they mean; what cannot be meant is refused with a cure.

Each function raises ValueError with "problem | cure".
"""

from __future__ import annotations

import re
from typing import Any, Final

_UNITS: Final = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")
_DTYPES: Final = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}


def refuse(problem: str, cure: str) -> ValueError:
    """A refusal that pydantic carries to the reader."""
    return ValueError(f"{problem} | {cure}")


def loose_int(value: Any) -> Any:
    """4, "4", 1e3 and "1e3" are whole numbers; 4.5, true and words are not."""
    if isinstance(value, bool):
        raise refuse("is true or false", "write a whole number")
    if isinstance(value, int):
        return value
    if isinstance(value, str | float):
        try:
            number = float(value)
        except ValueError:
            raise refuse("is not a number", "write a whole number") from None
        if number.is_integer():
            return int(number)
        raise refuse("is not a whole number", "write a whole number")
    return value


def loose_float(value: Any) -> Any:
    """3e-4 and "3e-4" are numbers; true, nan and words are not."""
    if isinstance(value, bool):
        raise refuse("is true or false", "write a number")
    if isinstance(value, str | int | float):
        try:
            number = float(value)
        except ValueError:
            raise refuse("is not a number", "write a number such as 3e-4") from None
        if number != number or number in (float("inf"), float("-inf")):
            raise refuse("is not finite", "write a number such as 3e-4")
        return number
    return value


def loose_text(value: Any) -> Any:
    """Text; a number is taken as it is written."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def dtype_word(value: Any) -> Any:
    """bf16 is bfloat16, fp16 is float16."""
    return _DTYPES.get(value, value) if isinstance(value, str) else value


def name_list(value: Any) -> Any:
    """A list of names; "q_proj,v_proj" is one too."""
    if isinstance(value, str):
        if value in ("all-linear", "all"):
            return "all-linear"
        names = [name.strip() for name in value.split(",")]
        return [name for name in names if name]
    return value


def share_or_rows(value: Any) -> Any:
    """Rows (2000) or a share (0.2)."""
    number = loose_float(value)
    if not isinstance(number, float):
        return value
    if number < 0:
        raise refuse("is negative", "write rows (2000), a share (0.2) or 0")
    written_as_share = isinstance(value, float) or (isinstance(value, str) and "." in value)
    if number == 0:
        return 0
    if number < 1:
        return number
    if written_as_share and number == 1.0:
        raise refuse("would leave no row to train on", "write a share below 1 such as 0.2, or rows as a whole number")
    if not number.is_integer():
        raise refuse("is neither rows nor a share", "write rows as a whole number, or a share below 1")
    return int(number)


def size_in_bytes(value: Any) -> int:
    """`7GB` = 7 × 10⁹, `7GiB` = 7 × 2³⁰, `7000MiB`, or bytes as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in _UNITS:
        raise refuse(f"{value!r} is not a size", "write 7GB, 7GiB, 7000MiB or bytes")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def max_memory_value(value: Any) -> Any:
    """{card: bytes}; keys are indices or UUIDs."""
    if not isinstance(value, dict):
        raise refuse("is not a map", "write {0: 7GiB, 1: 7GiB}")
    result: dict[int | str, int] = {}
    for key, size in value.items():
        text = str(key)
        if text.lower() in ("cpu", "disk"):
            raise refuse(f"names {text}: offloaded layers cannot be trained", "name cards only, such as {0: 7GiB}")
        if not text.isdigit() and not text.startswith(("GPU-", "MIG-")):
            raise refuse(f"{text!r} is no card", "use an index such as 0, or a UUID such as GPU-…")
        result[int(text) if text.isdigit() else text] = size_in_bytes(size)
    return result


def gpus_value(value: Any) -> Any:
    """auto, none, an index, or a list of indices and UUIDs."""
    if isinstance(value, bool):
        raise refuse("is true or false", "write auto, none or a list such as [0]")
    if value is None:
        return "none"
    if isinstance(value, int):
        value = [value]
    if isinstance(value, str) and value not in ("auto", "none"):
        value = [part.strip() for part in value.split(",")]
    if isinstance(value, list):
        cards = [int(v) if isinstance(v, str) and v.isdigit() else v for v in value]
        for card in cards:
            text_ok = isinstance(card, str) and card.startswith(("GPU-", "MIG-"))
            if not text_ok and not (isinstance(card, int) and not isinstance(card, bool) and card >= 0):
                raise refuse(f"{card!r} is no card", "use an index such as 0, or a UUID such as GPU-…")
        if len(set(cards)) != len(cards):
            raise refuse("names a card twice", "name each card once")
        if not cards:
            raise refuse("is an empty list", "write none for the CPU, or auto")
        return cards
    return value
