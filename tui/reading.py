"""The one thread that reads run directories for the screens. Screens get values, never paths to read.

It reads in small portions, so that keys are answered while a long run loads, looks twice a second at what
lives and more seldom at what has ended, and turns every failure into a message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from textual.message import Message

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.glance import glance
from llmtui.core.runs.reader import RunReader, liveness, run_directories
from llmtui.core.runs.state import RunState
from llmtui.tui.charts.series import CurveIndex
from llmtui.tui.machine import sample_machine
from llmtui.tui.messages import RunChanged, RunRow, RunsChanged, RunUnreadable
from llmtui.tui.output import OutputTail

_PORTION: Final = 1 << 21  # bytes of a file between two looks at what else is asked
_LIVE_SECONDS: Final = 0.5
_ENDED_SECONDS: Final = 2.0
_LIST_SECONDS: Final = 1.0
_SILENT_SECONDS: Final = 0.9
_DAMAGED_SECONDS: Final = 30.0

Deliver = Callable[[Message], object]


class _Watched:
    """The run that the Run place shows."""

    def __init__(self, directory: RunDirectory, deliver: Deliver) -> None:
        self.directory = directory
        self.deliver = deliver
        self.reader: RunReader | None = None
        self.index = CurveIndex()
        self.output = OutputTail(directory.output)
        self.due = 0.0
        self.shown_at = 0.0
        self.problem = ""
        self.heard: object = None

    def look(self, now: float) -> None:
        """Read a portion; tell the place at most twice a second."""
        try:
            if self.reader is None:
                self.reader = RunReader(self.directory)
            state = self.reader.poll(_PORTION)
            self.output.read()
            series = self.index.update(state.curve)
        except Exception as error:  # numbers that no file of ours holds end here too: shown, never fatal
            known = isinstance(error, (LlmtuiError, OSError))
            self.reader, self.index = None, self._new_index()
            self.due = now + (_ENDED_SECONDS if known else _DAMAGED_SECONDS)
            text = str(error) if known else unread(error)
            if text != self.problem:
                self.problem = text
                self.deliver(RunUnreadable(self.directory.id, text))
            return
        self.problem = ""
        read_all = self.reader.caught_up
        self.due = now + (_LIVE_SECONDS if state.alive else _ENDED_SECONDS) if read_all else now
        heard = (state.liveness, state.last_t, state.curve.length, series.smoothing, self.output.lines, read_all)
        # Nothing new: only the durations on screen have to go on.
        pause = 0.0 if read_all and heard != self.heard else _LIVE_SECONDS if not read_all else _SILENT_SECONDS
        if now - self.shown_at >= pause:
            self.heard = heard
            self.shown_at = now
            machine = None if state.alive else sample_machine(self.directory.path)
            self.deliver(RunChanged(self.directory.id, state, series, self.output.lines, machine, read_all))

    def _new_index(self) -> CurveIndex:
        index = CurveIndex()
        index.smoothing = self.index.smoothing
        return index


class _Listed:
    """One run of the list: followed while it lives, glanced at when it has ended."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self.row = RunRow(directory.id)
        self.read_all = False
        self._stamp: tuple[int, ...] | None = None
        self._reader: RunReader | None = None

    def look(self) -> None:
        """Bring the row up to date."""
        stamp = None
        try:
            stamp = _stamp(self.directory)
            alive = liveness(self.directory).any
            if not alive and stamp == self._stamp:
                return
            self.row = RunRow(self.directory.id, self._state(alive))
            self._stamp = None if alive else stamp
        except Exception as error:  # as above: one damaged run never hides the others
            known = isinstance(error, (LlmtuiError, OSError))
            self._reader, self._stamp, self.read_all = None, None if known else stamp, True
            text = error.message if isinstance(error, LlmtuiError) else str(error) if known else unread(error)
            self.row = RunRow(self.directory.id, None, text)

    def _state(self, alive: bool) -> RunState:
        if not alive:
            self._reader, self.read_all = None, True
            return glance(self.directory)
        if self._reader is None:
            self._reader = RunReader(self.directory)
        state = self._reader.poll(_PORTION)
        self.read_all = self._reader.caught_up
        return state


def unread(error: Exception) -> str:
    """What a failure that no error of ours stands for is called on screen."""
    return f"its events cannot be read: {type(error).__name__}: {error}"


def _stamp(directory: RunDirectory) -> tuple[int, ...]:
    sizes: list[int] = []
    for path in (directory.events, directory.monitor):
        try:
            status = path.stat()
            sizes += [status.st_size, status.st_mtime_ns]
        except FileNotFoundError:
            sizes += [-1, -1]
    return tuple(sizes)


class Reading(threading.Thread):
    """Start it once; say what to watch; it ends with `stop` or with the process."""

    def __init__(self, runs: Path) -> None:
        super().__init__(name="llmtui-reading", daemon=True)
        self._runs = runs
        self._wake = threading.Event()
        self._ended = False
        self._watched: _Watched | None = None
        self._paused = False
        self._list_deliver: Deliver | None = None
        self._listed: dict[Path, _Listed] = {}
        self._list_due = 0.0

    # --- asked by the screens; each is one assignment, so no lock is needed

    def watch(self, directory: RunDirectory, deliver: Deliver) -> None:
        """Follow this run, instead of the one before. The same again goes on where it was left."""
        watched = self._watched
        if watched is None or watched.directory != directory:
            watched = _Watched(directory, deliver)
        watched.deliver, watched.due, watched.shown_at, watched.problem, watched.heard = deliver, 0.0, 0.0, "", None
        self._watched, self._paused = watched, False
        self._wake.set()

    def smooth(self, smoothing: float) -> None:
        """Smooth the watched run's losses so; the answer comes as a message."""
        watched = self._watched
        if watched is not None:
            watched.index.smoothing = smoothing
            watched.due = 0.0
            self._wake.set()

    def unwatch(self) -> None:
        """Follow no run for now (its place is not on screen)."""
        self._paused = True

    def list_to(self, deliver: Deliver | None) -> None:
        """Keep telling this receiver about all runs; None ends it."""
        self._list_deliver = deliver
        self._list_due = 0.0
        self._wake.set()

    def look_now(self) -> None:
        """Something was asked of a run: look without waiting."""
        self._list_due = 0.0
        if self._watched is not None:
            self._watched.due = 0.0
        self._wake.set()

    def stop(self) -> None:
        """End the thread."""
        self._ended = True
        self._wake.set()

    # --- the thread

    def run(self) -> None:
        while not self._ended:
            now = time.monotonic()
            watched, deliver = None if self._paused else self._watched, self._list_deliver
            if watched is not None and watched.due <= now:
                watched.look(now)
            if deliver is not None and self._list_due <= now:
                self._look_at_all(deliver)
            due = [watched.due] if watched is not None else []
            due += [self._list_due] if deliver is not None else []
            wait = min(due, default=now + 60.0) - time.monotonic()
            # A moment even when more is to be read: the screen's thread gets its turn at keys.
            self._wake.wait(max(0.001, wait))
            self._wake.clear()

    def _look_at_all(self, deliver: Deliver) -> None:
        try:
            directories = run_directories(self._runs)
        except FileNotFoundError:
            directories = []
        except OSError as error:
            self._list_due = time.monotonic() + _ENDED_SECONDS
            deliver(RunsChanged((), f"the runs cannot be listed: {error.strerror}: {self._runs}", True))
            return
        paths = {directory.path for directory in directories}
        self._listed = {path: run for path, run in self._listed.items() if path in paths}
        shown_at = time.monotonic()
        rows: list[RunRow] = []
        for directory in reversed(directories):
            if self._ended or self._list_deliver is not deliver:
                return
            run = self._listed.setdefault(directory.path, _Listed(directory))
            run.look()
            rows.append(run.row)
            now = time.monotonic()
            watched = None if self._paused else self._watched
            if watched is not None and watched.due <= now:
                watched.look(now)
            if now - shown_at > _LIVE_SECONDS:  # a long list grows on screen while it is read
                shown_at = now
                rest = [self._listed[d.path].row for d in reversed(directories) if d.path in self._listed]
                deliver(RunsChanged(tuple(rest), "", False))
                self._wake.wait(0.002)
        read_all = all(run.read_all for run in self._listed.values())
        self._list_due = time.monotonic() + (_LIST_SECONDS if read_all else 0.0)
        deliver(RunsChanged(tuple(rows), "", read_all))
