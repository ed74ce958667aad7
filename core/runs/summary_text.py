"""A run for a terminal: what a person asks first."""

from __future__ import annotations

from llmtui.core import words
from llmtui.core.runs.facts import Summary
from llmtui.core.runs.label_words import exact_match_words
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.runs.summary_markdown import losses, shortened, steps
from llmtui.core.text import safe_text


def summary_text(facts: Summary) -> str:
    """Name and value, one pair a line; answers and warnings below."""
    lines = [f"{facts.id}  {facts.state}" + (f": {facts.cause}" if facts.cause else "")]
    lines += [f"  {name:<13}{value}" for name, value in _rows(facts)]
    last = max((s.step for s in facts.samples), default=None)
    if last is not None:
        lines.append(f"  answers at step {last}:")
    for sample in (s for s in facts.samples if s.step == last):
        answer = (shortened(sample) or "").replace("\n", " ⏎ ")
        lines.append(f"    {sample.prompt.replace(chr(10), ' ⏎ ')} → {answer}")
    lines += [f"  warning      {text}" for text in facts.warnings]
    if facts.hint:
        lines.append(f"  to do        {facts.hint}")
    return "\n".join(scrub(safe_text(line, newlines=True)) for line in lines)


def _rows(facts: Summary) -> list[tuple[str, str]]:
    rate = f"{words.rate(facts.overall_it_per_second)} overall, {words.rate(facts.mean_it_per_second)} without pauses"
    evals = f"{words.number(facts.eval_loss)}, best {words.number(facts.best_eval_loss)}"
    accuracy = f", token accuracy {words.percent(facts.eval_accuracy, 1)}" if facts.eval_accuracy is not None else ""
    last = facts.evals[-1] if facts.evals else None
    exact = exact_match_words(last.exact_match, last.by_label) if last else ""
    rows = [
        ("preset", facts.preset),
        ("steps", f"{steps(facts)} ({words.number(facts.epoch)} epochs)"),
        ("loss", losses(facts)),
        ("eval loss", evals + accuracy if facts.evals else words.UNKNOWN),
        *([("labels", exact)] if exact else []),
        ("it/s", rate),
        ("tokens/s", words.rate(facts.mean_tokens_per_second)),
        ("time", f"{words.duration(facts.training_seconds)} in training"),
        ("device", facts.plan.device if facts.plan else words.UNKNOWN),
    ]
    for card in facts.cards:
        peak = f"peak {words.size(card.peak_allocated)} allocated, {words.size(card.peak_process)} of this process"
        rows.append((f"GPU {card.index}", f"{peak}, {words.size(card.peak_card)} on the card ({card.name})"))
    checkpoints = ", ".join(f"{c.step} ({words.size(c.bytes)})" for c in facts.checkpoints)
    rows += [("checkpoints", checkpoints or words.UNKNOWN)]
    if facts.alive and facts.eta_seconds is not None:
        rows.append(("left", f"{words.duration(facts.eta_seconds)}, done {words.clock(facts.finish)}"))
    rows.append(("result", f"{facts.directory}/{facts.result.path}" if facts.result else words.UNKNOWN))
    rows.append(("directory", facts.directory))
    return rows
