"""Lines for output.log: what a person reads with `llmtui logs`, beside the events that programs read."""

from __future__ import annotations

import sys
from functools import singledispatch

from llmtui.core.runs import events as ev
from llmtui.core.runs.label_words import exact_match_words

_MIB = 1 << 20


def say(text: str) -> None:
    """One line to output.log. A full disk costs the line, not the run."""
    try:
        print(text, flush=True)  # noqa: T201
    except OSError:
        # What could not be written stays in the stream's buffer and would fail again at the next line.
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


@singledispatch
def line(event: ev.EventBase) -> str | None:
    """An event as a line; None for those that need none."""
    return None


@line.register
def _(event: ev.Plan) -> str:
    dropped = "".join(f", {count} dropped ({reason})" for reason, count in event.dropped.items())
    return (
        f"plan · {event.total_steps} steps from step {event.from_step} · effective batch {event.effective_batch} · "
        f"{event.train_rows} rows to train on, {event.val_rows} to evaluate{dropped} · "
        f"{event.trainable_parameters:,} of {event.total_parameters:,} parameters · {event.dtype} on {event.device}"
    )


@line.register
def _(event: ev.Eval) -> str:
    exact = exact_match_words(event.exact_match, event.by_label)
    return (
        f"eval at step {event.step} · loss {_number(event.loss)} · accuracy {_number(event.accuracy)} · "
        f"{event.rows} rows in {event.seconds:.1f} s{' · ' if exact else ''}{exact}"
    )


@line.register
def _(event: ev.Checkpoint) -> str:
    return f"{event.path} · {event.bytes / _MIB:.1f} MiB in {event.seconds:.2f} s ({event.reason})"


@line.register
def _(event: ev.BatchSize) -> str:
    return f"micro-batch {event.per_device_train_batch_size}, the effective batch stays: {event.cause}"


@line.register
def _(event: ev.Sample) -> str:
    return f"sample {event.index + 1} at step {event.step} · {event.prompt!r} → {event.text!r}"


@line.register
def _(event: ev.WarningEvent) -> str:
    return f"warning · {event.text}"


@line.register
def _(event: ev.Answer) -> str:
    return f"{event.request} {'obeyed' if event.accepted else 'refused'} · {event.text}"


@line.register
def _(event: ev.Result) -> str:
    return f"result · {event.path}/ from step {event.step} ({event.source}) · {event.bytes / _MIB:.1f} MiB"


@line.register
def _(event: ev.ErrorEvent) -> str:
    return f"error · {event.message}" + (f" — {event.hint}" if event.hint else "")


@line.register
def _(event: ev.Exit) -> str:
    return f"{event.outcome} at step {event.step}" + (f" · {event.cause}" if event.cause else "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
