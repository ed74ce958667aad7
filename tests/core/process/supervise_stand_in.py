"""The real supervisor's process with the stand-in worker in its place: `$STAND_IN` is the script.

The summary (seconds of matplotlib) is written only when `$STAND_IN_SUMMARY` is set.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from llmtui.core.process import supervise
from llmtui.core.process.stopping import StopLimits
from llmtui.core.runs.directory import RunDirectory

QUICK = StopLimits(now_terminate=0.5, now_kill=1.5, silent_terminate=1.0, silent_kill=2.5)


def command(directory: RunDirectory, attempt: int) -> list[str]:
    """The stand-in's command line."""
    return [
        sys.executable,
        "-m",
        "tests.core.process.stand_in",
        str(directory.path),
        str(attempt),
        os.environ["STAND_IN"],
    ]


if __name__ == "__main__":
    supervise.Supervisor = partial(  # type: ignore[assignment,misc]
        supervise.Supervisor, command=command, first_pause=0.2, limits=QUICK
    )
    if "STAND_IN_SUMMARY" not in os.environ:
        supervise.write_summary = lambda _: ""
    sys.exit(supervise.main())
