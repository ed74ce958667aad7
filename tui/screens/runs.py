"""The Runs place: every run, queued, running and past, newest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from textual.widget import Widget

from llmtui.core import words
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.state import RunState
from llmtui.tui import keys
from llmtui.tui.messages import RunRow, RunsChanged
from llmtui.tui.screens.filtering import FilteredPlace, contains
from llmtui.tui.screens.run_actions import RunActions, is_orphan
from llmtui.tui.widgets.list_pane import Column, ListPane, Row
from llmtui.tui.widgets.pane import Drawing, Piece

_COLUMNS: Final = (
    Column("run", 16, grow=True),
    Column("state", 13),
    Column("step", 11, right=True, grow=True, drop=4),
    Column("done", 5, right=True),
    Column("it/s", 6, right=True, drop=3),
    Column("ETA", 6, right=True, drop=1),
    Column("loss", 7, right=True),
    Column("age", 5, right=True),
    Column("preset", 12, grow=True, drop=5),
    Column("cause", 12, grow=True, drop=6),
)
_SORTS: Final[tuple[tuple[str, Callable[[RunRow], Any]], ...]] = (
    ("newest first", lambda row: ()),
    ("by name", lambda row: row.state.info.name.casefold() if row.state else "~"),
    ("by state", lambda row: _STATE_ORDER.get(row.state.state if row.state else "damaged", 9)),
    ("by loss", lambda row: row.state.last_loss if row.state and row.state.last_loss is not None else float("inf")),
)
_STATE_ORDER: Final[dict[str, int]] = {
    "running": 0, "stopping": 1, "starting": 2, "queued": 3, "failed": 4, "interrupted": 5, "stopped": 6, "finished": 7,
}  # fmt: skip


class RunsPlace(FilteredPlace, RunActions, inherit_bindings=False):
    """A list of all runs."""

    PLACE = "runs"
    BINDINGS = keys.bindings("runs")

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[RunRow, ...] = ()
        self._sort = 0
        self._read_all = False
        self._problem = ""

    def body(self) -> Iterable[Widget]:
        pane = ListPane(_COLUMNS, id="runs")
        pane.empty = ("", "reading the runs …")
        yield pane

    def on_screen_resume(self) -> None:
        self.llmtui.reading.list_to(self.post_message)

    def on_screen_suspend(self) -> None:
        self.llmtui.reading.list_to(None)

    def on_runs_changed(self, message: RunsChanged) -> None:
        self._rows, self._read_all, self._problem = message.rows, message.read_all, message.problem
        self._show()
        if any(row.state is not None and is_orphan(row.state) for row in message.rows):
            self.llmtui.adopt()

    def filter_changed(self) -> None:
        self._show()

    def _show(self) -> None:
        pane = self.query_one("#runs", ListPane)
        rows = [row for row in self._rows if contains(_search_text(row), self.filter_text)]
        rows.sort(key=_SORTS[self._sort][1])
        states = [row.state for row in self._rows if row.state is not None]
        alive = sum(state.alive for state in states)
        dot = f" {Drawing.glyphs.dot} "
        pane.heading = [("Runs", "title"), (f"  {len(self._rows)}, {alive} alive{dot}{_SORTS[self._sort][0]}", "faint")]
        pane.note = [(f"filter: {self.filter_text}", "key")] if self.filter_text else []
        pane.empty = self._empty()
        now_t = time.time()
        pane.show([Row(row.id, _cells(row, now_t)) for row in rows])
        self.show_keys()

    def _empty(self) -> tuple[str, ...]:
        if self._problem:
            return ("", self._problem)
        if not self._read_all:
            return ("", "reading the runs …")
        if self._rows:
            return ("", "no run contains this; esc clears the filter")
        return (
            "",
            "No run yet.",
            "1 goes to the presets: choose one there and press r.",
            "Or in a shell: llmtui run demo",
        )

    # --- keys

    def chosen_run(self) -> tuple[RunDirectory, RunState | None] | None:
        key = self.query_one("#runs", ListPane).cursor_key
        if key is None:
            return None
        row = next((row for row in self._rows if row.id == key), None)
        return RunDirectory(self.llmtui.runs / key), None if row is None else row.state

    def on_list_pane_moved(self) -> None:
        self.show_keys()

    def action_open_run(self) -> None:
        chosen = self.chosen_run()
        if chosen is not None:
            self.llmtui.open_run(chosen[0])

    def action_sort(self) -> None:
        self._sort = (self._sort + 1) % len(_SORTS)
        self._show()

    def action_copy(self) -> None:
        chosen = self.chosen_run()
        if chosen is not None:
            self.llmtui.copy(chosen[0].id)


def _search_text(row: RunRow) -> str:
    state = row.state
    if state is None:
        return f"{row.id} damaged {row.problem}"
    return f"{row.id} {state.info.name} {state.state} {state.info.preset} {state.cause} {state.info.description}"


def _cells(row: RunRow, now_t: float) -> tuple[Piece, ...]:
    glyphs = Drawing.glyphs
    state = row.state
    if state is None:
        damaged = (f"{glyphs.states['damaged']} damaged", "state_damaged")
        unknown: Piece = (words.UNKNOWN, "faint")
        return (
            (row.id, "text"),
            damaged,
            unknown,
            unknown,
            unknown,
            unknown,
            unknown,
            unknown,
            unknown,
            (row.problem, "bad"),
        )
    known = bool(state.curve.length or state.plan)
    moving = state.alive and not state.final
    age = (state.ended_t if state.final else None) or state.info.created
    return (
        (state.info.name, "strong" if moving else "text"),
        (f"{glyphs.states.get(state.state, '?')} {state.state}", f"state_{state.state}"),
        (f"{state.step:,}/{words.short_count(state.total_steps)}" if known else words.UNKNOWN, "text"),
        (words.percent(state.step, state.total_steps) if known else words.UNKNOWN, "text"),
        (words.rate(state.speed.it_per_second), "text"),
        (words.short_duration(state.eta.seconds) if state.eta and moving else words.UNKNOWN, "text"),
        (words.number(state.last_loss) if not _last_is_bad(state) else "NaN", "bad" if _last_is_bad(state) else "text"),
        (words.short_duration(max(0.0, now_t - age)), "faint"),
        (state.info.preset, "faint"),
        (state.cause if state.final else _phase(state), "faint"),
    )


def _last_is_bad(state: RunState) -> bool:
    return bool(state.curve.length) and state.last_loss is None


def _phase(state: RunState) -> str:
    return state.phase.name.replace("_", " ") if state.phase is not None else state.cause
