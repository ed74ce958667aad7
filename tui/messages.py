"""What the reading thread tells the places. The frequent ones replace each other, so that a flood is one update."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from llmtui.core.runs.events import Hardware
from llmtui.core.runs.state import RunState
from llmtui.tui.charts.series import CurveSeries


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list. `problem` says why it could not be read."""

    id: str
    state: RunState | None = None
    problem: str = ""


class RunChanged(Message, bubble=False):
    """The watched run, as it is now. `read_all` is False while a long history is still being read; `machine` is
    a sample taken here, for a run whose supervisor takes none any more."""

    def __init__(
        self,
        run_id: str,
        state: RunState,
        series: CurveSeries,
        output: tuple[str, ...],
        machine: Hardware | None,
        read_all: bool,
    ) -> None:
        super().__init__()
        self.run_id = run_id
        self.state = state
        self.machine = machine
        self.series = series
        self.output = output
        self.read_all = read_all

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RunChanged)


class RunUnreadable(Message, bubble=False):
    """The watched run's directory is missing or damaged."""

    def __init__(self, run_id: str, text: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.text = text


class RunsChanged(Message, bubble=False):
    """All runs, newest first; or why they cannot be listed."""

    def __init__(self, rows: tuple[RunRow, ...], problem: str, read_all: bool) -> None:
        super().__init__()
        self.rows = rows
        self.problem = problem
        self.read_all = read_all

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, RunsChanged)
