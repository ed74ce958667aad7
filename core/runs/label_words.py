"""Exact match of labelled rows as people read it, the same in news, on the screen and in the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from llmtui.core import words
from llmtui.core.runs import events as ev

_SHOWN: Final = 12


def exact_match_words(exact_match: float | None, by_label: Mapping[str, ev.LabelScore | Mapping[str, Any]]) -> str:
    """`exact match 93.2 % (neg 90.0 % of 120, pos 95.1 % of 130)`; empty without labels.

    Args:
        by_label: structs, or the same as read from JSON; many labels are cut short.
    """
    if exact_match is None:
        return ""
    parts = [f"{name} {right} of {rows}" for name, right, rows in label_cells(by_label)]
    if len(parts) > _SHOWN:
        parts = [*parts[:_SHOWN], f"and {len(parts) - _SHOWN} labels more"]
    each = f" ({', '.join(parts)})" if parts else ""
    return f"exact match {share(exact_match)}{each}"


def share(value: float | None) -> str:
    """`93.2 %`; never 100 before it is whole."""
    if value is None:
        return words.UNKNOWN
    return f"{100 * value if value == 1 else min(99.9, 100 * value):.1f} %"


def label_cells(by_label: Mapping[str, ev.LabelScore | Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """For each label: its name, the share of its rows answered exactly, and how many rows it has."""
    scores = {name: ev.label_score(score) for name, score in by_label.items()}
    return [(name, share(s.exact_match), words.count(s.rows)) for name, s in scores.items()]
