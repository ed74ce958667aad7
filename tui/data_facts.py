"""What a preset is trained on, in facts. Pure: counts in, sentences out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llmtui.core import words
from llmtui.tui.widgets.facts_pane import Fact

if TYPE_CHECKING:
    from llmtui.core.data.statistics import SideStatistics, Statistics


def data_facts(counted: Statistics, notes: Sequence[str]) -> list[Fact]:
    """What the run gets first, then where its rows come from and which were left out, and why."""
    facts = [Fact("training", _side(counted.train), "strong")]
    facts.append(Fact("validation", _side(counted.val)) if counted.val is not None else Fact("validation", "no rows"))
    facts.append(_of_both("cut", counted, lambda side: side.rows_cut))
    facts.append(_of_both("no end", counted, lambda side: side.rows_without_end))
    epochs = f"{counted.epochs:.3g} epoch{'' if counted.epochs == 1 else 's'}"
    epoch = f"{words.count(counted.steps_per_epoch)} steps, {words.count(counted.tokens_per_epoch)} tokens"
    facts.append(Fact("steps", f"{words.count(counted.total_steps)} in {epochs}", "strong"))
    facts += [Fact("epoch", epoch), Fact("batch", f"{_rows(counted.effective_batch)} a step")]
    facts += [Fact("note", note, "warn") for note in notes]
    facts += _origins(counted)
    for label, rows in counted.train.labels.items():
        held = counted.val.labels.get(label) if counted.val is not None else None
        val = f", {words.count(held)} held out" if held is not None else ""
        facts.append(Fact("label", f"{label}: {_rows(rows)}{val}"))
    return facts


def _side(side: SideStatistics) -> str:
    trained = f"{words.count(side.trained_tokens)} trained ({side.trained_tokens / max(1, side.tokens):.0%})"
    return f"{_rows(side.rows)}, {words.count(side.tokens)} tokens, {trained}"


def _of_both(name: str, counted: Statistics, number: Callable[[SideStatistics], int]) -> Fact:
    """A count that is best 0, of both sides."""
    train, val = number(counted.train), number(counted.val) if counted.val is not None else 0
    what = {"cut": "", "no end": " without end token"}[name]
    if not train and not val:
        return Fact(name, f"0 rows{what}")
    held = f" and {words.count(val)} held out" if counted.val is not None else ""
    return Fact(name, f"{_rows(train)}{held}{what}", "warn")


def _origins(counted: Statistics) -> list[Fact]:
    facts = [Fact("read", _rows(counted.rows_read))]
    for source in counted.sources:
        facts.append(Fact("source", f"{source.name}: {_rows(source.rows)}"))
        facts += [Fact("  dropped", f"{_rows(rows)}: {reason}", "warn") for reason, rows in source.dropped.items()]
    for reason, rows in counted.dropped.items():  # what no source was charged with
        rest = rows - sum(source.dropped.get(reason, 0) for source in counted.sources)
        if rest > 0:
            facts.append(Fact("dropped", f"{_rows(rest)}: {reason}", "warn"))
    facts += [Fact("cleaned", f"{_rows(rows)}: {step}") for step, rows in counted.cleaned.items()]
    if counted.rows_split:
        facts.append(Fact("split", f"{_rows(counted.rows_split)} longer than max_length, in parts"))
    return facts


def _rows(rows: int) -> str:
    return f"{words.count(rows)} row{'' if rows == 1 else 's'}"
