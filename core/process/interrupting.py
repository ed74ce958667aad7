"""Ctrl-C while a run is being started: the start is finished, then told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from llmtui.core.runs.directory import RunDirectory


class StartedAnyway(KeyboardInterrupt):
    """Ctrl-C came when the run had begun to start: it goes on without the terminal."""

    def __init__(self, directory: RunDirectory) -> None:
        super().__init__()
        self.directory = directory


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """Hold Ctrl-C back; what came meanwhile is in the list. Nothing is held outside of the main thread, nor where it
    is ignored (`nohup`, `&`)."""
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield came
        return

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)
