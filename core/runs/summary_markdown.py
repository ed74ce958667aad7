"""The hand-over of a run as Markdown.

Text from outside is escaped, tokens are scrubbed, and what is not known is "–".
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Sequence
from typing import Any, Final

from llmtui.core import words
from llmtui.core.runs.events import Sample
from llmtui.core.runs.facts import Summary
from llmtui.core.runs.label_words import label_cells, share
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.runs.summary_use import Recipe, recipes
from llmtui.core.text import safe_text

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
_LONGEST_ANSWER: Final = 300


def md(value: object) -> str:
    """A value as Markdown text: one line, in which nothing is markup."""
    if value is None or value == "":
        return words.UNKNOWN
    return _MARKDOWN.sub(r"\\\1", scrub(safe_text(str(value).replace("\r\n", "\n").replace("\n", " ⏎ "))))


def code(text: str, language: str = "") -> str:
    """Text as a Markdown code block that it cannot end."""
    clean = scrub(safe_text(text, newlines=True)).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", clean)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{clean}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of cells that are escaped already."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def summary_markdown(facts: Summary) -> str:
    """The whole summary."""
    sections = (
        ("Numbers", _numbers(facts)), ("Memory", _memory(facts)), ("Evaluations", _evals(facts)),
        ("Answers before and after", _samples(facts)), ("Data and settings", _data(facts)),
        ("Machine and versions", _machine(facts)), ("Attempts and warnings", _attempts(facts)),
        ("Checkpoints and result", _files(facts)), ("Go on, and use it", _use(recipes(facts))),
        ("Preset, rerunnable as it is", code(facts.preset_yaml, "yaml") if facts.preset_yaml else ""),
    )  # fmt: skip
    parts = [f"# {md(facts.id)}", md(facts.description) if facts.description else "", _headline(facts)]
    parts += [f"## {title}\n\n{body}" for title, body in sections if body]
    return "\n\n".join(part for part in parts if part) + "\n"


def steps(facts: Summary) -> str:
    """`4,881 of 4,881`."""
    return f"{words.count(facts.step)} of {words.count(facts.total_steps)}"


def losses(facts: Summary) -> str:
    """First and last; a last one that is not finite is named."""
    last = words.number(facts.loss)
    if facts.loss is None and facts.bad_steps and facts.bad_steps[-1][0] == facts.step:
        last = facts.bad_steps[-1][1]
    return f"{words.number(facts.first_loss)} → {last}"


def _headline(facts: Summary) -> str:
    cause = f" ({md(facts.cause)})" if facts.cause else ""
    return f"**{facts.state}**{cause}: {steps(facts)} steps of preset {md(facts.preset)}, loss {losses(facts)}."


def _numbers(facts: Summary) -> str:
    plan = facts.plan
    best = f"{words.number(facts.best_eval_loss)} (step {words.count(facts.best_eval_step)})"
    rows = [
        ("steps", steps(facts)),
        ("epochs", words.number(facts.epoch)),
        ("time in training, pauses included", words.duration(facts.training_seconds)),
        ("overall it/s: steps ÷ that time, as published tables give it", words.rate(facts.overall_it_per_second)),
        ("it/s without pauses, mean", words.rate(facts.mean_it_per_second)),
        ("it/s without pauses, of the last steps", words.rate(facts.it_per_second)),
        ("tokens/s, real ones without padding, mean", words.rate(facts.mean_tokens_per_second)),
        ("tokens seen", words.count(facts.total_tokens)),
        ("loss, first → last", losses(facts)),
        ("eval loss, last and best", f"{words.number(facts.eval_loss)}, {best}" if facts.evals else words.UNKNOWN),
        ("effective batch", _batch(plan)),
        ("trained parameters", _parameters(plan)),
    ]
    rows += [(f"time: {md(name.replace('_', ' '))}", words.duration(s)) for name, s in facts.seconds_by_phase.items()]
    return table(("what", "value"), rows)


def _batch(plan: Any) -> str:
    if plan is None:
        return words.UNKNOWN
    ranks = "1 process" if plan.processes == 1 else f"{plan.processes} processes"
    accumulated = f"accumulation {plan.gradient_accumulation_steps}"
    return f"{plan.effective_batch} = {plan.per_device_train_batch_size} × {accumulated} × {ranks}"


def _parameters(plan: Any) -> str:
    if plan is None:
        return words.UNKNOWN
    share = 100 * plan.trainable_parameters / max(1, plan.total_parameters)
    return f"{words.count(plan.trainable_parameters)} of {words.count(plan.total_parameters)} ({share:.3g} %)"


def _memory(facts: Summary) -> str:
    if not facts.cards:
        return (
            f"No GPU was used. The worker held {words.size(facts.worker_rss)} of the machine's memory at the last look."
        )
    rows = [
        (f"{card.index} {md(card.name)}", words.size(card.weights), words.size(card.peak_allocated),
         words.size(card.peak_reserved), words.size(card.peak_process), words.size(card.peak_card),
         words.size(card.card_at_end), words.size(card.total))
        for card in facts.cards
    ]  # fmt: skip
    header = ("GPU", "weights", "peak allocated", "peak reserved", "peak of this process", "peak on the card",
              "on the card at the end of training", "card")  # fmt: skip
    return table(header, rows)


def _evals(facts: Summary) -> str:
    labelled = any(e.exact_match is not None for e in facts.evals)
    rows = [
        (words.count(e.step), words.number(e.loss), words.number(e.perplexity), words.percent(e.accuracy, 1),
         *([share(e.exact_match)] if labelled else []), words.count(e.rows),
         "best" if e.step == facts.best_eval_step else "")
        for e in facts.evals
    ]  # fmt: skip
    header = ("step", "loss", "perplexity", "token accuracy", *(["exact match"] if labelled else []), "rows", "")
    if not rows:
        return ""
    labels = [(md(name), right, count) for name, right, count in label_cells(facts.evals[-1].by_label)]
    last = f"By label, at step {words.count(facts.evals[-1].step)}:"
    each = ["", last, "", table(("label", "exact match", "rows"), labels)] if labels else []
    return "\n".join([table(header, rows), *each])


def _samples(facts: Summary) -> str:
    if not facts.samples:
        return ""
    first, last = min(s.step for s in facts.samples), max(s.step for s in facts.samples)
    by_place = {(s.step, s.index): s for s in facts.samples}
    rows = []
    for index in sorted({s.index for s in facts.samples}):
        before, after = by_place.get((first, index)), by_place.get((last, index))
        known = before or after
        prompt = known.prompt if known else ""
        rows.append((md(prompt), md(shortened(before)), md(shortened(after))))
    return table(("prompt", f"step {first}", f"step {last}"), rows)


def shortened(sample: Sample | None) -> str | None:
    """An answer in a table's cell."""
    if sample is None:
        return None
    text = sample.text.strip()
    return (text if len(text) <= _LONGEST_ANSWER else f"{text[:_LONGEST_ANSWER]} …") or "(nothing)"


def _data(facts: Summary) -> str:
    plan, dataset = facts.plan, facts.settings.get("dataset") or {}
    if plan is None:
        return ""
    dropped = ", ".join(f"{md(reason)} {words.count(count)}" for reason, count in plan.dropped.items()) or "none"
    rows = [
        ("model", md((facts.settings.get("model") or {}).get("name_or_path") or plan.base_model)),
        ("base model as loaded", md(plan.base_model)),
        ("quantisation, computed in", f"{md(plan.quantization)}, {md(plan.dtype)}"),
        ("attention", md(plan.attention)),
        ("data", md(dataset.get("name_or_path"))),
        ("template, trained on", f"{md(dataset.get('template'))}, {md(dataset.get('train_on'))}"),
        ("rows, training and validation", f"{words.count(plan.train_rows)}, {words.count(plan.val_rows)}"),
        ("rows dropped", dropped),
        ("tokens per epoch", f"{words.count(plan.tokens_per_epoch)}, {words.count(plan.train_tokens)} of them trained"),
        ("hash of tokens and labels", md(plan.data_hash)),
        ("warm-up steps", words.count(plan.warmup_steps)),
    ]
    notes = "".join(f"\n- {md(note)}" for note in plan.notes if note)
    return table(("what", "value"), rows) + (f"\n{notes}" if notes else "")


def _machine(facts: Summary) -> str:
    last = facts.attempts[-1] if facts.attempts else None
    gpus = ", ".join(f"{g.index} {g.name} ({g.uuid})" for g in last.gpus) if last else ""
    versions = ", ".join(f"{name} {version}" for name, version in last.versions.items()) if last else ""
    git = last.git if last else {}
    commit = f"{git['commit']}{', with changes' if git.get('changed') else ''}" if git.get("commit") else None
    rows = [
        ("host", md(facts.host)), ("device", md(facts.plan.device if facts.plan else None)),
        ("GPUs", md(gpus or "none")), ("driver", md(last.driver if last else None)),
        ("Python", md(last.python if last else None)), ("libraries", md(versions)), ("git", md(commit)),
        ("command", md(shlex.join(facts.command) if facts.command else None)),
    ]  # fmt: skip
    return table(("what", "value"), rows)


def _attempts(facts: Summary) -> str:
    lines = []
    if facts.parent:
        lines.append(f"- forked from {md(facts.parent)} at step {words.count(facts.parent_step)}")
    for attempt in facts.attempts:
        origin = f"from step {attempt.from_step}" if attempt.from_step else "from the beginning"
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(attempt.started))
        lines.append(f"- attempt {attempt.attempt}, {started}, {origin}")
    if facts.error:
        lines.append(f"- failed: {md(facts.error.place)} {md(facts.error.message)} {md(facts.error.hint)}")
    lines += [f"- {md(text)}" for text in facts.warnings]
    lines += [f"- the loss was {md(kind)} at step {step}" for step, kind in facts.bad_steps[:20]]
    for batch in facts.batch_sizes:
        size = batch.per_device_train_batch_size
        lines.append(f"- micro-batches of {size} from step {batch.step} on: {md(batch.cause)}")
    return "\n".join(lines)


def _files(facts: Summary) -> str:
    rows = [(md(c.path), words.count(c.step), words.size(c.bytes), "") for c in facts.checkpoints]
    if facts.result:
        result = facts.result
        sums = f"xxh3-128 {md(result.hash)}"
        rows.append((md(result.path), words.count(result.step), words.size(result.bytes), sums))
    place = f"In {md(facts.directory)} on {md(facts.host)}:\n\n"
    return place + table(("path", "step", "size", "hash"), rows) if rows else ""


def _use(found: Sequence[Recipe]) -> str:
    return "\n\n".join(f"{md(recipe.purpose)}:\n\n{code(recipe.text, recipe.language)}" for recipe in found)
