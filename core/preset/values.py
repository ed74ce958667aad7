"""Values as people write them, turned into what they mean; what cannot be meant is refused with a cure.

Each function raises ValueError with "problem | cure".
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
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
        raise refuse("is not a whole number", "write a whole number")
    if isinstance(value, int):
        return value
    if not isinstance(value, str | float):
        return value
    try:
        return int(value) if isinstance(value, str) else _whole(value)
    except ValueError:
        pass
    try:
        return _whole(float(value))
    except ValueError:
        raise refuse("is not a whole number", "write a whole number") from None


def _whole(number: float) -> int:
    if not number.is_integer():
        raise ValueError
    return int(number)


def loose_float(value: Any) -> Any:
    """3e-4 and "3e-4" are numbers; true, nan and words are not."""
    if isinstance(value, bool):
        raise refuse("is not a number", "write a number such as 3e-4")
    if isinstance(value, str | int | float):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise refuse("is not a number", "write a number such as 3e-4") from None
        if not math.isfinite(number):
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
    """A list of layer names; "q_proj,v_proj" is one too."""
    if isinstance(value, str):
        if value in ("all-linear", "all"):
            return "all-linear"
        value = [name.strip() for name in value.split(",")]
    if isinstance(value, list):
        if not value or not all(isinstance(name, str) and name.strip() for name in value):
            raise refuse("names no layer", "write names such as [q_proj, v_proj], or all-linear")
        if len(set(value)) != len(value):
            raise refuse("names a layer twice", "name each layer once")
    return value


def prompt_list(value: Any) -> Any:
    """A list of prompts; one text is a list of one."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and any(not isinstance(prompt, str) or not prompt.strip() for prompt in value):
        raise refuse("has an empty prompt", "write something to answer, or remove it")
    return value


def label_names(value: Any) -> Any:
    """{id: name}; a list names the ids 0, 1, …"""
    cure = "write [neg, pos] or {0: neg, 1: pos}"
    if isinstance(value, list):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        raise refuse("names no labels", cure)
    named: dict[str, Any] = {}
    for key, called in value.items():
        text = str(key).lower() if isinstance(key, bool) else str(key).strip()
        name = str(called).lower() if isinstance(called, bool) else loose_text(called)
        if not isinstance(name, str) or not name.strip():
            raise refuse(f"has no name for {text}", cure)
        if text in named:
            raise refuse(f"names {text} twice", "name each id once")
        named[text] = name.strip()
    return named


def count_list(value: Any) -> Any:
    """A list of counts; `100` and `100,500` are lists too."""
    if isinstance(value, str):
        value = value.split(",")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, list):
        value = [loose_int(item) for item in value]
        if any(isinstance(item, int) and item < 1 for item in value):
            raise refuse("has a count below 1", "write counts such as [64, 128]")
    return value


def folder_or_section(value: Any) -> Any:
    """`mirror: /mnt/drive` is short for `mirror: {path: /mnt/drive}`."""
    return {"path": value} if isinstance(value, str) else value


def share_or_rows(value: Any) -> Any:
    """Rows (2000), or a share (0.2, 20%)."""
    cure = "write rows (2000), a share (0.2) or 0"
    if isinstance(value, str) and value.strip().endswith("%"):
        value = loose_float(value.strip()[:-1]) / 100
    number = loose_float(value)
    if not isinstance(number, float):
        raise refuse("is neither rows nor a share", cure)
    if number < 0:
        raise refuse("is negative", cure)
    if number < 1:
        return number or 0
    written_as_share = isinstance(value, float) or (isinstance(value, str) and "." in value)
    if written_as_share and number == 1.0:
        raise refuse("would leave no row to train on", "write a share below 1 such as 0.2, or rows as a whole number")
    if not number.is_integer():
        raise refuse("is neither rows nor a share", "write rows as a whole number, or a share below 1")
    return int(number)


def size_in_bytes(value: Any) -> int:
    """`7GB` = 7 × 10⁹, `7GiB` = 7 × 2³⁰, `7000MiB`, or bytes as a number."""
    match = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if isinstance(value, float) and math.isfinite(value):
        size = int(value)
    elif match is not None and match[2].lower() in _UNITS:
        size = int(Decimal(match[1]) * _UNITS[match[2].lower()])
    else:
        raise refuse(f"{value} is not a size", "write 7GB, 7GiB, 7000MiB or bytes")
    if size < 1:
        raise refuse(f"{value} leaves a card nothing", "write a size such as 7GiB, or name the card in gpus only")
    return size


def max_memory_value(value: Any) -> Any:
    """{card: bytes}; keys are indices or UUIDs."""
    if not isinstance(value, dict):
        raise refuse("is not a map of cards", "write {0: 7GiB, 1: 7GiB}")
    result: dict[int | str, int] = {}
    for key, size in value.items():
        card = str(key).strip()
        if card.lower() in ("cpu", "disk"):
            raise refuse(f"it names {card}: offloaded layers cannot be trained", "name cards only, such as {0: 7GiB}")
        result[_card(card)] = size_in_bytes(size)
    return result


def gpus_value(value: Any) -> Any:
    """auto, none, an index, or a list of indices and UUIDs."""
    if isinstance(value, bool):
        raise refuse("is no card", "write auto, none or a list such as [0]")
    if value is None:
        return "none"
    if isinstance(value, str):
        if value.strip().lower() in ("auto", "none"):
            return value.strip().lower()
        value = [part.strip() for part in value.split(",")]
    cards = value if isinstance(value, list) else [value]
    named = [_card(card) for card in cards]
    if len(set(named)) != len(named):
        raise refuse("names a card twice", "name each card once")
    if not named:
        raise refuse("is an empty list", "write none for the CPU, or auto")
    return named


def _card(value: Any) -> int | str:
    """An index or a UUID."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    text = value if isinstance(value, str) else ""
    if text.isascii() and text.isdigit():
        return int(text)
    if text.startswith(("GPU-", "MIG-")):
        return text
    cure = "write none for the CPU" if text.lower() == "cpu" else "use an index such as 0, or a UUID such as GPU-…"
    raise refuse(f"{value} is no card", cure)
