"""What is new in a run's state since the last look, and how it is said."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from llmtui.core import words
from llmtui.core.runs import events as ev
from llmtui.core.runs.label_words import exact_match_words
from llmtui.core.runs.state import RunState

Item = dict[str, Any]
# At most one step line in so many seconds: often at first, when it may be wrong, rarely in the night.
_PACE: Final = ((60.0, 2.0), (600.0, 10.0), (float("inf"), 30.0))
_LISTS: Final = (
    ("eval", "evals"), ("checkpoint", "checkpoints"), ("sample", "samples"), ("batch_size", "batch_sizes"),
    ("warning", "warnings"),
)  # fmt: skip
_QUIET_PHASES: Final = ("training", "saving", "generating")


class News:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._told: dict[str, set[tuple[float, int]]] = {}
        self._state: tuple[str, str] = ("", "")
        self._phase = ""
        self._plan: ev.Plan | None = None
        self._step = -1
        self._began = time.monotonic()
        self._line_at = 0.0

    def pass_over(self, state: RunState) -> None:
        """Take what there is as told."""
        for _ in self.of(state):
            pass
        self._state, self._phase = ("", ""), ""

    def of(self, state: RunState) -> Iterator[tuple[str, Item]]:
        """What is new: kind and values, in the order in which it is best read."""
        if (state.state, state.cause) != self._state and not state.final:
            self._state = (state.state, state.cause)
            yield "state", {"id": state.id, "state": state.state, "cause": state.cause, "attempt": state.attempt}
        phase = state.phase
        if phase is not None and phase.name != self._phase:
            self._phase = phase.name
            if phase.name not in _QUIET_PHASES:
                yield "phase", {"name": phase.name, "text": phase.text}
        if state.plan is not None and state.plan != self._plan:
            self._plan = state.plan
            yield "plan", _bare(state.plan)
        yield from self._step_line(state)
        for kind, attribute in _LISTS:
            yield from self._new_of(kind, getattr(state, attribute))

    def _new_of(self, kind: str, items: Sequence[Any]) -> Iterator[tuple[str, Item]]:
        told = self._told.setdefault(kind, set())
        for item in items:
            if (item.t, item.n) not in told:
                told.add((item.t, item.n))
                yield kind, _bare(item)

    def _step_line(self, state: RunState) -> Iterator[tuple[str, Item]]:
        now = time.monotonic()
        last = state.step == state.total_steps or (state.final and not state.alive)
        pause = next(pause for limit, pause in _PACE if now - self._began < limit)
        if not state.curve.length or state.step == self._step or (now - self._line_at < pause and not last):
            return
        self._step, self._line_at = state.step, now
        yield "step", {
            "step": state.step, "total_steps": state.total_steps, "loss": state.last_loss, "epoch": state.epoch,
            "it_per_second": state.speed.it_per_second, "tokens_per_second": state.speed.tokens_per_second,
            "eta_seconds": state.eta.seconds if state.eta else None,
            "finish": state.eta.finish_t if state.eta else None,
        }  # fmt: skip


def _bare(event: ev.EventBase) -> Item:
    return {name: value for name, value in msgspec.to_builtins(event).items() if name not in ("type", "n", "m")}


def sentence(kind: str, item: Item) -> str:
    """The line (or lines) for people."""
    match kind:
        case "state":
            return f"{item['id']} {item['state']}" + (f": {item['cause']}" if item["cause"] else "")
        case "phase":
            return f"  {item['name'].replace('_', ' ')}" + (f" ({item['text']})" if item["text"] else "")
        case "plan":
            return _plan(item)
        case "step":
            return _step(item)
        case "eval":
            accuracy = words.percent(item.get("accuracy"), 1)
            numbers = f"loss {words.number(item.get('loss'))}, perplexity {words.number(item.get('perplexity'))}"
            exact = exact_match_words(item.get("exact_match"), item.get("by_label", {}))
            return f"  eval at step {item['step']}: {numbers}, token accuracy {accuracy}{', ' if exact else ''}{exact}"
        case "checkpoint":
            return f"  saved {item['path']} ({words.size(item['bytes'])} in {item['seconds']:.1f} s)"
        case "sample":
            return _sample(item)
        case "batch_size":
            size, effective = item["per_device_train_batch_size"], item["effective_batch"]
            return f"  micro-batches of {size} from now on, effective batch {effective} as before: {item['cause']}"
        case _:
            return f"  warning: {item.get('text', '')}"


def _sample(item: Item) -> str:
    answer = item["text"].strip() or "(nothing)"
    return f"  at step {item['step']}: {item['prompt']} → {answer}".replace("\n", " ⏎ ")


def _step(item: Item) -> str:
    finish = item["finish"]
    left = f"{words.duration(item['eta_seconds'])} left, done {words.clock(finish)}" if finish is not None else ""
    total = words.count(item["total_steps"])
    rates = f"{words.rate(item['it_per_second'])} it/s  {words.rate(item['tokens_per_second'])} tokens/s"
    return f"  step {words.count(item['step'])}/{total}  loss {words.number(item['loss'])}  {rates}  {left}".rstrip()


def _plan(item: Item) -> str:
    dropped = ", ".join(f"{reason} {words.count(count)}" for reason, count in item.get("dropped", {}).items())
    rows = f"{words.count(item['train_rows'])} rows to train on, {words.count(item['val_rows'])} to validate"
    trained, every = item["trainable_parameters"], item["total_parameters"]
    base = item.get("quantization", "none")
    lines = [
        f"  {rows}" + (f", dropped: {dropped}" if dropped else ""),
        f"  {words.count(item['total_steps'])} steps of {words.count(item['effective_batch'])} rows"
        + (f", from step {words.count(item['from_step'])} on" if item["from_step"] else ""),
        f"  {words.short_count(trained)} of {words.short_count(every)} parameters trained "
        f"on {item.get('device', 'cpu')} in {item['dtype']}" + (f", the base in {base}" if base != "none" else ""),
    ]
    return "\n".join([*lines, *(f"  note: {note}" for note in item.get("notes", []) if note)])
