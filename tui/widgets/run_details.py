"""The lower panes of the Run place: log, sample answers, checkpoints, warnings.

On a small terminal they share one slot, and each one's title then names them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from llmtui.core import words
from llmtui.core.runs import events as ev
from llmtui.core.runs.label_words import label_cells, share
from llmtui.core.runs.state import RunState
from llmtui.tui import keys
from llmtui.tui.widgets.list_pane import Column, ListPane, Row
from llmtui.tui.widgets.pane import Drawing, Piece
from llmtui.tui.widgets.text_pane import TextPane

Tabs = Sequence[tuple[str, str, bool]]
"""Of each lower pane: its name, its count as text, whether it is the one that is shown."""


def heading(name: str, note: str, tabs: Tabs) -> list[Piece]:
    """The pane's own name, or all names with its own brought out."""
    if not tabs:
        return [(name, "title"), (f" {note}" if note else "", "faint")]
    pieces: list[Piece] = []
    for title, count, shown in tabs:
        label = f"{title} {count}" if count else title
        if pieces:
            pieces.append((f" {Drawing.glyphs.dot} ", "rule"))
        pieces.append((f"[{label}]", "title") if shown else (label, "faint"))
    return pieces


class LogPane(TextPane):
    """The end of the worker's output; follows it until the reader scrolls up."""

    BINDINGS = keys.bindings("log")
    SCOPES = ("log", "text")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(follow=True, id=id)
        self.empty = "the worker has written nothing yet"

    @property
    def _follows(self) -> bool:
        return True

    def show_output(self, lines: tuple[str, ...], tabs: Tabs) -> None:
        """Lines as `OutputTail` gives them: the same tuple while nothing was written."""
        self.heading = heading("Log", "" if self.following else "(f follows)", tabs)
        if self.is_news(lines, tabs, self.following):
            self.lines = tuple((line, "text") for line in lines)
            self.repaint()

    def copied(self) -> str:
        """What `y` copies: the lines."""
        return "\n".join(text for text, _ in self.lines)


class WarningsPane(TextPane):
    """Warnings, and what became of requests."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.empty = "no warnings"

    def show_state(self, state: RunState, tabs: Tabs) -> None:
        """Newest first."""
        if not self.is_news(state.warnings, state.answers, state.batch_sizes, tabs):
            return
        self.heading = heading("Warnings", str(len(state.warnings) or ""), tabs)
        events: list[ev.WarningEvent | ev.Answer | ev.BatchSize] = [*state.warnings, *state.answers, *state.batch_sizes]
        events.sort(key=lambda event: -event.t)
        lines = tuple(_warning_line(event) for event in events)
        self.lines = lines
        self.repaint()

    def copied(self) -> str:
        """What `y` copies."""
        return "\n".join(text for text, _ in self.lines)


def _warning_line(event: ev.WarningEvent | ev.Answer | ev.BatchSize) -> Piece:
    when = words.clock(event.t) if event.t else words.UNKNOWN
    if isinstance(event, ev.WarningEvent):
        return f"{when}  {event.text}  ({event.code})", "warn"
    if isinstance(event, ev.BatchSize):
        per, times = event.per_device_train_batch_size, Drawing.glyphs.times
        batch = f"{per} {times} {event.gradient_accumulation_steps}"
        return f"{when}  batch is now {batch} from step {event.step:,}: {event.cause}", "warn"
    done = "done" if event.accepted else "refused"
    return f"{when}  {event.request.replace('_', ' ')}: {done}{': ' + event.text if event.text else ''}", "text"


class SamplesPane(TextPane):
    """How many labels are answered exactly, and the answers to the preset's prompts: before training beside now."""

    BINDINGS = keys.bindings("samples")
    SCOPES = ("samples", "text")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.empty = "no sample answers: they come with each evaluation"
        self._prompt = 0
        self._samples: tuple[ev.Sample, ...] = ()
        self._labels: ev.Eval | None = None
        self._tabs: Tabs = ()

    def show_state(self, state: RunState, tabs: Tabs) -> None:
        """Answers, grouped by prompt."""
        labels = next((e for e in reversed(state.evals) if e.by_label), None)
        if not self.is_news(state.samples, labels, tabs):
            return
        fresh = state.samples != self._samples or labels != self._labels
        self._samples, self._labels, self._tabs = state.samples, labels, tabs
        self._write(fresh)

    def action_sample(self, by: int) -> None:
        count = len(self._prompts())
        if count:
            self._prompt = (self._prompt + by) % count
            self._top = 0
            self._write(True)

    def _prompts(self) -> list[int]:
        return sorted({sample.index for sample in self._samples})

    def _write(self, fresh: bool) -> None:
        prompts = self._prompts()
        self._prompt = max(0, min(self._prompt, len(prompts) - 1))
        place = f"{self._prompt + 1} of {len(prompts)}" if prompts else ""
        self.heading = heading("Sample answers", f"{place} {'[ ]' if len(prompts) > 1 else ''}".strip(), self._tabs)
        if fresh:
            answers = self._lines(prompts[self._prompt]) if prompts else []
            self.lines = (*self._label_lines(), *answers)
        self.repaint()

    def _label_lines(self) -> list[Piece]:
        if self._labels is None:
            return []
        whole = share(self._labels.exact_match)
        lines: list[Piece] = [(f"labels answered exactly at step {self._labels.step:,}: {whole}", "strong")]
        cells = label_cells(self._labels.by_label)
        return lines + [(f"{right} of {rows}  {name}", "text") for name, right, rows in cells]

    def _lines(self, index: int) -> list[Piece]:
        answers = sorted((s for s in self._samples if s.index == index), key=lambda sample: sample.step)
        lines: list[Piece] = [("asked", "faint"), (answers[-1].prompt, "strong")]
        shown = [answers[-1]] if len(answers) == 1 else [answers[-1], answers[0], *reversed(answers[1:-1])]
        for answer in shown:
            step = "before training" if answer.step == 0 else f"at step {answer.step:,}"
            cut = f", {answer.stopped}" if answer.stopped else ""
            lines.append((f"{step} ({answer.tokens} tokens, {answer.seconds:.1f} s{cut})", "faint"))
            lines.append((answer.text or "(nothing)", "text"))
        return lines

    def copied(self) -> str:
        """What `y` copies: prompt and answers."""
        return "\n".join(text for text, _ in self.lines)


class CheckpointsPane(ListPane):
    """The checkpoints on local disk, newest first."""

    SCOPES = ("checkpoints", "list")

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        columns = (
            Column("step", 10, right=True),
            Column("size", 9, right=True),
            Column("saved in", 8, right=True, drop=2),
            Column("at", 16, drop=1),
            Column("why", 12, grow=True, drop=3),
        )
        super().__init__(columns, id=id)
        self.empty = ("no checkpoint yet",)

    def show_state(self, state: RunState, tabs: Tabs) -> None:
        """Rows from the state."""
        best = state.best_eval.step if state.best_eval is not None else None
        if not self.is_news(state.checkpoints, best, tabs):
            return
        self.heading = heading("Checkpoints", str(len(state.checkpoints) or ""), tabs)
        self.show([_checkpoint_row(c, best) for c in sorted(state.checkpoints, key=lambda c: -c.step)])

    def copied(self) -> str:
        """What `y` copies: the path below the run's folder."""
        return self.cursor_key or ""


def _checkpoint_row(checkpoint: ev.Checkpoint, best: int | None) -> Row:
    why = checkpoint.reason.replace("_", " ") + (", best eval" if checkpoint.step == best else "")
    return Row(
        checkpoint.path,
        (
            (f"{checkpoint.step:,}", "strong"),
            (words.size(checkpoint.bytes), "text"),
            (f"{checkpoint.seconds:.1f} s", "faint"),
            (words.clock(checkpoint.t or None), "text"),
            (why, "faint"),
        ),
    )
