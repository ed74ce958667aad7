"""What the supervisor says: `monitor.jsonl`. A full disk costs lines, never the supervisor."""

from __future__ import annotations

import sys
from contextlib import suppress

from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter

# Kept through a power loss; hardware samples need not be.
_SYNCED = (ev.StateEvent, ev.Attempt, ev.Answer)


class Journal:
    """The supervisor's file; the only writer of it."""

    def __init__(self, directory: RunDirectory) -> None:
        self._writer = EventWriter(directory.monitor)
        self._state: ev.StateEvent | None = None

    def write(self, event: ev.EventBase) -> None:
        """Append one event."""
        try:
            self._writer.write(event)
            if isinstance(event, _SYNCED):
                self._writer.fsync()
        except OSError as error:
            with suppress(OSError):
                print(f"a monitor event could not be written: {error}", file=sys.stderr, flush=True)  # noqa: T201

    def state(
        self, state: ev.State, cause: str = "", kind: str = "", hint: str = "", exit_code: int | None = None
    ) -> None:
        """The run's state from now on."""
        event = ev.StateEvent(state=state, cause=cause, kind=kind, hint=hint, exit_code=exit_code)
        if event != self._state:
            self._state = event
            self.write(event)

    def warn(self, code: str, text: str) -> None:
        """Something the user should know; `code` is stable."""
        self.write(ev.WarningEvent(code=code, text=text))

    def close(self) -> None:
        """Sync and close; safe to call twice."""
        with suppress(OSError):
            self._writer.close()
