"""Why a worker died, in a sentence: its own last word, the signal, the kernel's memory killer, its last output."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from llmtui.core.runs import events as ev
from llmtui.core.text import safe_text

_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Cause:
    """How an attempt ended. `again` says whether starting it again may help."""

    state: ev.State
    text: str
    kind: str = ""
    hint: str = ""
    exit_code: int = 1
    again: bool = False


def oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory: on the machine, and in this control group."""
    total = _counter(Path("/proc/vmstat"), "oom_kill")
    return total + _counter(Path("/sys/fs/cgroup/memory.events"), "oom_kill")


def _counter(path: Path, name: str) -> int:
    try:
        for line in path.read_text("ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return 0


def name_cause(
    run_id: str, returncode: int | None, exit_: ev.Exit | None, error: ev.ErrorEvent | None, *,
    oom: bool, killed_by_us: str, output: Path,
) -> Cause:  # fmt: skip
    """The cause of an attempt's end.

    Args:
        returncode: of the process, negative for a signal; None when it was not our child.
        oom: whether the kernel's memory killer struck meanwhile.
        killed_by_us: why the supervisor killed it, empty when it did not.
    """
    resume = f"llmtui resume {run_id}"
    if exit_ is not None and exit_.outcome == "finished":
        return Cause("finished", exit_.cause, exit_code=0)
    if exit_ is not None and exit_.outcome == "stopped":
        return Cause("stopped", exit_.cause, hint=resume, exit_code=4)
    if error is not None:
        text = f"{error.place}: {error.message}" if error.place else error.message
        return Cause("failed", text, error.kind, error.hint, error.exit_code)
    if killed_by_us:
        return Cause("stopped", killed_by_us, "killed", resume, 4)
    if returncode is not None and returncode >= 0:
        last = last_line(output)
        text = f"the worker ended with exit code {returncode} and no word" + (
            f"; its last line: {last}" if last else ""
        )
        return Cause("failed", text, "exit", f"llmtui logs {run_id}", 1, again=returncode not in (2, 3))
    if oom:
        return Cause("failed", "the machine's memory ran out and the kernel killed the worker (OOM killer, SIGKILL)",
                     "host_memory", "close other programs, or use a smaller model or batch", 1)  # fmt: skip
    if returncode is None:
        return Cause("interrupted", "the worker is gone without a last word", "gone", resume, 4, again=True)
    return Cause("interrupted", f"the worker was killed by {signal_name(-returncode)}", "signal", resume, 4, again=True)


def signal_name(number: int) -> str:
    """Such as `SIGKILL (signal 9)`."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def last_line(path: Path) -> str:
    """The last line of an output file that is not empty, made safe."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").replace("\r", "\n").splitlines()
    except OSError:
        return ""
    return next((safe_text(line.strip())[:200] for line in reversed(lines) if line.strip()), "")
