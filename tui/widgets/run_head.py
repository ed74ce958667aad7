"""The numbers of one run in five lines: state, progress, speeds, time left, phase and health."""

from __future__ import annotations

import time
from typing import Final

from textual.strip import Strip

from llmtui.core import words
from llmtui.core.runs.state import RunState
from llmtui.tui.health import Finding, health
from llmtui.tui.widgets.bars import bar
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, cut, strip_of, width_of
from llmtui.tui.widgets.text_pane import wrap

PHASE_WORDS: Final = {
    "downloading": ("downloading", "bytes"),
    "loading_model": ("loading the model", "bytes"),
    "loading_dataset": ("loading the data", "rows"),
    "tokenizing": ("tokenizing", "rows"),
    "training": ("training", "steps"),
    "evaluating": ("evaluating", "batches"),
    "saving": ("saving a checkpoint", "bytes"),
    "generating": ("answering the sample prompts", "prompts"),
    "finalizing": ("writing the result", "bytes"),
}


class RunHead(Pane, can_focus=False):
    """Shows a `RunState`; draws no more lines than it has room for."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.state: RunState | None = None
        self.problem = ""
        self.name_shown = ""
        self.read_all = True

    def show(self, state: RunState | None, *, problem: str = "", name: str = "", read_all: bool = True) -> None:
        """A state, or why there is none."""
        self.state, self.problem, self.name_shown, self.read_all = state, problem, name, read_all
        self.repaint()

    def title(self) -> tuple[Line, Line]:
        state = self.state
        if state is None:
            return ((self.name_shown or "no run", "title"),), ()
        left: list[Piece] = [(state.info.name, "strong")]
        if self.size.width >= 70:
            left.append((f"  {state.id}", "faint"))
        return left, state_pieces(state)

    def content(self, width: int, height: int) -> list[Strip]:
        if self.state is None:
            lines = wrap(self.problem, max(8, width - 2)) if self.problem else []
            return [strip_of(((f" {line}", "bad"),), width) for line in lines][:height]
        return [strip_of(line, width) for line in head_lines(self.state, width, self.read_all)[:height]]


def state_pieces(state: RunState) -> list[Piece]:
    """`● running · attempt 2` with the state's glyph and style."""
    glyph = Drawing.glyphs.states.get(state.state, "?")
    pieces: list[Piece] = [(f"{glyph} {state.state}", f"state_{state.state}")]
    if state.attempt > 1:
        pieces.append((f" {Drawing.glyphs.dot} attempt {state.attempt}", "faint"))
    return pieces


def head_lines(state: RunState, width: int, read_all: bool = True, now_t: float | None = None) -> list[Line]:
    """The lines below the title, the most important first."""
    now = time.time() if now_t is None else now_t
    lines: list[Line] = [_progress(state, width), _speeds(state, width, now)]
    if state.final and read_all:
        lines += _cause(state, width)
    else:
        lines.append(_phase(state, width, read_all))
    findings = health(state)
    if len(lines) > 3 and not any(finding.severity == "bad" for finding in findings):
        return lines
    if findings:
        lines.append(_finding_line(findings))
    elif state.plan is not None:
        lines.append(_plan_line(state))
    return lines


def _spread(left: list[Piece], right: list[Piece], width: int) -> list[Piece]:
    """Left and right aligned on one line; the right part goes when there is no room."""
    gap = width - width_of(left) - width_of(right) - 1
    if not right or gap < 2:
        return left
    return [*left, (" " * gap, "text"), *right]


def _progress(state: RunState, width: int) -> list[Piece]:
    total = state.total_steps
    step = f"{state.step:,}" if state.curve.length or state.plan else words.UNKNOWN
    left: list[Piece] = [(" step ", "faint"), (step, "strong"), (f"/{words.count(total)}", "text")]
    right: list[Piece] = [("epoch ", "faint"), (words.UNKNOWN if state.epoch is None else f"{state.epoch:.2f}", "text")]
    if state.plan is not None:
        right.append(("/" + f"{state.plan.epochs:.2f}".rstrip("0").rstrip("."), "text"))
    share = words.percent(state.step, total) if total else words.UNKNOWN
    left.append((f"  {share:>4} ", "strong"))
    room = width - width_of(left) - width_of(right) - 4
    if room >= 8:
        left += bar(((state.step / total if total else 0.0, "bar_run"),), min(room, 100))
    return _spread(left, right, width)


def _speeds(state: RunState, width: int, now: float) -> list[Piece]:
    speed, dot = state.speed, f" {Drawing.glyphs.dot} "
    left: list[Piece] = [
        (f" {words.rate(speed.it_per_second)} it/s", "strong"),
        (f"{dot}{words.rate(speed.overall_it_per_second)} overall it/s", "text"),
        (f"{dot}{words.rate(speed.tokens_per_second)} tokens/s", "text"),
    ]
    return _spread(left, _time_left(state, width, now), width)


def _time_left(state: RunState, width: int, now: float) -> list[Piece]:
    arrow = Drawing.glyphs.arrow
    if state.final:
        ended = state.ended_t or state.last_t
        spent = None if state.started_t is None or ended is None else max(0.0, ended - state.started_t)
        return [("took ", "faint"), (words.duration(spent), "text"), (f", ended {words.clock(ended, now)}", "faint")]
    if state.eta is None:
        return [("ETA ", "faint"), (words.UNKNOWN, "text")]
    pieces: list[Piece] = [
        ("ETA ", "faint"),
        (words.duration(state.eta.seconds), "strong"),
        (f" {arrow} {words.clock(state.eta.finish_t, now)}", "text"),
    ]
    if width >= 130:
        pieces.append((f" ({state.eta.includes})", "faint"))
    return pieces


def _phase(state: RunState, width: int, read_all: bool) -> list[Piece]:
    if not read_all:
        return [(f" reading the history … {state.step:,} steps so far", "busy")]
    phase = state.phase
    if phase is None:
        text = state.cause or {"queued": "waiting for its GPUs", "starting": "the worker is starting"}.get(
            state.state, ""
        )
        return [(" " + text, "busy")]
    name, unit = PHASE_WORDS.get(phase.name, (phase.name, ""))
    since = words.duration(max(0.0, state.now_m - phase.since_m))
    left: list[Piece] = [(f" {name}", "busy")]
    if phase.name != "training" and (phase.total or phase.done):
        left.append((f" {_amount(phase.done, unit)}", "text"))
        if phase.total:
            left.append(
                (f" of {_amount(phase.total, unit)} {'' if unit == 'bytes' else unit} ".replace("  ", " "), "text")
            )
            left += bar(((min(1.0, phase.done / phase.total), "bar_run"),), 12)
    if phase.text:
        left.append((f" {Drawing.glyphs.dot} {phase.text}", "faint"))
    left.append((f" {Drawing.glyphs.dot} for {since}", "faint"))
    if state.cause:
        left.append((f" {Drawing.glyphs.dot} {state.cause}", "warn"))
    right: list[Piece] = []
    if state.eta is not None and width < 130:
        right = [(f"ETA: {state.eta.includes}", "faint")]
    return _spread(left, right, width)


def _amount(value: int, unit: str) -> str:
    return words.size(value) if unit == "bytes" else f"{value:,}"


def _cause(state: RunState, width: int) -> list[list[Piece]]:
    """Why it ended, and what to do about it: one line where it fits, else two."""
    cause, style = state.cause, "bad" if state.state == "failed" else "text"
    if not cause and state.result is not None:
        cause, style = f"result: {state.result.path}/ from step {state.result.step:,}", "good"
    hint = state.hint
    if state.state in ("stopped", "interrupted") or hint.startswith("llmtui resume"):
        hint = "R resumes it"
    hint = f"{Drawing.glyphs.arrow} {hint}" if hint else ""
    whole: list[Piece] = [(f" {cause}  ", style), (hint, "key")]
    if width_of(whole) <= width:
        return [whole]
    parts = wrap(cause, max(10, width - 2))
    lines: list[list[Piece]] = [[(f" {part}", style)] for part in parts[:2]]
    if hint:
        room = width - width_of(lines[-1]) - 3
        if len(lines) == 1:
            lines.append([(f" {hint}", "key")])
        elif room >= 10:
            lines[-1] = [*lines[-1], ("  " + cut(hint, room), "key")]
        else:
            lines[-1] = [(" " + cut(parts[1], width - len(hint) - 4), style), ("  " + cut(hint, width // 2), "key")]
    return lines


def _finding_line(findings: list[Finding]) -> list[Piece]:
    marks = {"good": Drawing.glyphs.states["finished"], "warn": "!", "bad": Drawing.glyphs.bad_point}
    pieces: list[Piece] = []
    for finding in findings:
        severity, text = finding.severity, finding.text
        pieces.append((f"{'  ' if pieces else ' '}{marks[severity]} {text}", severity))
    return pieces


def _plan_line(state: RunState) -> list[Piece]:
    plan = state.plan
    assert plan is not None
    dot = f" {Drawing.glyphs.dot} "
    times = Drawing.glyphs.times
    batch = f"batch {plan.per_device_train_batch_size} {times} {plan.gradient_accumulation_steps}"
    if plan.processes > 1:
        batch += f" {times} {plan.processes}"
    trained = f"{words.short_count(plan.trainable_parameters)} of {words.short_count(plan.total_parameters)} trained"
    return [(f" {plan.train_rows:,} rows{dot}{batch} = {plan.effective_batch}{dot}{plan.dtype}{dot}{trained}", "faint")]
