"""Following a run in plain text or JSON lines until it ends; Ctrl-C detaches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from llmtui.core import words
from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.facts import run_row
from llmtui.core.runs.reader import RunReader
from llmtui.core.runs.state import RunState
from llmtui.tui.commands.output import say, say_json_line

_POLL_SECONDS: Final = 0.25
_LINE_SECONDS: Final = 2.0  # at most one step line in this time
DETACHED: Final = 130


def follow(directory: RunDirectory, as_json: bool) -> int:
    """Print what happens until no process of the run lives; the run's exit code, 130 when detached."""
    reader = RunReader(directory)
    teller = _Teller(as_json)
    try:
        while True:
            state = reader.poll()
            teller.tell(state)
            if state.final and not state.alive:
                break
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        return _detached(directory, as_json)
    return _ended(state, directory, as_json)


def _detached(directory: RunDirectory, as_json: bool) -> int:
    if as_json:
        say_json_line({"detached": True, "id": directory.id})
    else:
        say()
        say(f"detached: the run goes on. To come back: llmtui attach {directory.id}")
        say(f"To end it: llmtui stop {directory.id}")
    return DETACHED


def _ended(state: RunState, directory: RunDirectory, as_json: bool) -> int:
    code = state.exit_code if state.exit_code is not None else 1
    if as_json:
        say_json_line(run_row(state, directory))
        return code
    cause = f": {state.cause}" if state.cause else ""
    say(f"{state.state} at step {state.step}{cause}", error=code == 1)
    if state.hint:
        say(f"  {state.hint}", error=code == 1)
    if state.result is not None:
        say(f"  result   {directory.path / state.result.path}")
    if (directory.path / "summary.md").is_file():
        say(f"  summary  {directory.path / 'summary.md'}")
    return code


class _Teller:
    """Prints what is new in a state since the last one."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._seen: dict[str, int] = {}
        self._phase = ""
        self._state = ""
        self._line_at = 0.0
        self._step = -1
        self._attempt = 0

    def tell(self, state: RunState) -> None:
        """Say what is new."""
        if state.attempt != self._attempt:
            self._attempt, self._seen = state.attempt, {}
        for kind, item in self._news(state):
            if self._json:
                say_json_line({"type": kind, **item})
            else:
                say(_line(kind, item))

    def _news(self, state: RunState) -> Iterator[tuple[str, dict[str, Any]]]:
        if state.state != self._state:
            self._state = state.state
            yield "state", {"state": state.state, "cause": state.cause, "id": state.id}
        phase = state.phase.name if state.phase else ""
        if phase and phase != self._phase and phase not in ("training", "saving"):
            yield "phase", {"name": phase, "text": state.phase.text if state.phase else ""}
        self._phase = phase or self._phase
        if state.plan is not None and self._fresh("plan", 1):
            yield "plan", _plan(state.plan)
        yield from self._step_line(state)
        for name, items in (("eval", state.evals), ("checkpoint", state.checkpoints[-1:]), ("sample", state.samples),
                            ("warning", state.warnings), ("batch_size", state.batch_sizes)):  # fmt: skip
            yield from self._new_of(name, items)

    def _fresh(self, name: str, count: int) -> bool:
        old = self._seen.get(name, 0)
        self._seen[name] = count
        return count > old

    def _new_of(self, name: str, items: tuple[Any, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
        import msgspec

        newest = self._seen.get(f"n{name}", -1)
        for item in items:
            if item.n > newest:
                self._seen[f"n{name}"] = max(self._seen.get(f"n{name}", -1), item.n)
                yield name, {k: v for k, v in msgspec.to_builtins(item).items() if k not in ("type", "n", "m")}

    def _step_line(self, state: RunState) -> Iterator[tuple[str, dict[str, Any]]]:
        now = time.monotonic()
        last = state.total_steps is not None and state.step == state.total_steps
        if not state.curve.length or state.step == self._step or (now - self._line_at < _LINE_SECONDS and not last):
            return
        self._step, self._line_at = state.step, now
        yield "step", {
            "step": state.step, "total_steps": state.total_steps, "loss": state.last_loss, "epoch": state.epoch,
            "it_per_second": state.speed.it_per_second, "tokens_per_second": state.speed.tokens_per_second,
            "eta_seconds": state.eta.seconds if state.eta else None, "finish": state.eta.finish_t if state.eta else None,
        }  # fmt: skip


def _plan(plan: ev.Plan) -> dict[str, Any]:
    return {
        "train_rows": plan.train_rows, "val_rows": plan.val_rows, "dropped": plan.dropped,
        "total_steps": plan.total_steps, "from_step": plan.from_step, "effective_batch": plan.effective_batch,
        "trainable_parameters": plan.trainable_parameters, "total_parameters": plan.total_parameters,
        "device": plan.device, "dtype": plan.dtype, "quantization": plan.quantization, "notes": plan.notes,
    }  # fmt: skip


def _line(kind: str, item: dict[str, Any]) -> str:
    match kind:
        case "state":
            return f"{item['id']}: {item['state']}" + (f" — {item['cause']}" if item["cause"] else "")
        case "phase":
            return f"  {item['name'].replace('_', ' ')}" + (f" ({item['text']})" if item["text"] else "")
        case "plan":
            return _plan_line(item)
        case "step":
            eta = f"{words.duration(item['eta_seconds'])} left, done {words.clock(item['finish'])}"
            return (
                f"  step {item['step']}/{item['total_steps']}  loss {words.number(item['loss'])}  "
                f"{words.rate(item['it_per_second'])} it/s  {words.rate(item['tokens_per_second'])} tokens/s  "
                + (eta if item["eta_seconds"] is not None else "–")
            )
        case "eval":
            return (
                f"  eval at step {item['step']}: loss {words.number(item.get('loss'))}, perplexity "
                f"{words.number(item.get('perplexity'))}, token accuracy {words.percent(item.get('accuracy'), 1)}"
            )
        case "checkpoint":
            return f"  saved {item['path']} ({words.size(item['bytes'])})"
        case "sample":
            return f"  step {item['step']} | {item['prompt']} → {item['text'].strip() or '(nothing)'}".replace(
                "\n", " "
            )
        case "batch_size":
            return f"  micro-batch {item['per_device_train_batch_size']}, effective {item['effective_batch']}: {item['cause']}"
        case _:
            return f"  warning: {item.get('text', '')}"


def _plan_line(item: dict[str, Any]) -> str:
    dropped = ", ".join(f"{reason}: {count}" for reason, count in item["dropped"].items())
    lines = [
        f"  {words.count(item['train_rows'])} rows to train on, {words.count(item['val_rows'])} to validate"
        + (f", dropped {dropped}" if dropped else ""),
        f"  {words.count(item['total_steps'])} steps of {item['effective_batch']} rows"
        + (f", from step {item['from_step']}" if item["from_step"] else "")
        + f"; {words.short_count(item['trainable_parameters'])} of {words.short_count(item['total_parameters'])} parameters train"
        + f"; {item['device']}, {item['dtype']}"
        + (f", base {item['quantization']}" if item["quantization"] != "none" else ""),
    ]
    return "\n".join([*lines, *(f"  note: {note}" for note in item["notes"])])
