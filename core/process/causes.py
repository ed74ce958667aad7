"""Why a worker ended, in a sentence: its own last word, a signal, the kernel's memory killer, its last output."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmtui.core.process.last_words import LastWords, known_trouble, read_last_words
from llmtui.core.runs import events as ev

_GIB: Final = 1 << 30
_FULL_BYTES: Final = 8 << 20
# Sent by people and by a machine that shuts down: they mean it.
_WISHES: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
_CRASHES: Final = {
    signal.SIGSEGV: "it touched memory that is not its own",
    signal.SIGABRT: "a library gave up",
    signal.SIGBUS: "a mapped file shrank or its disk failed, or /dev/shm is full",
    signal.SIGILL: "this CPU lacks an instruction that a library uses",
    signal.SIGFPE: "arithmetic in a library",
    signal.SIGTRAP: "a library gave up",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """How an attempt ended. `again` says whether starting it again may help."""

    state: ev.State
    text: str
    kind: str = ""
    hint: str = ""
    exit_code: int = 1
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known about a worker's end.

    Args:
        returncode: of the process, negative for a signal; None when it was not our child.
        exit_: its own last line; None when it had none.
        error: its last error event in this attempt.
        oom_kills: how many processes the kernel's memory killer took meanwhile.
        killed_for: why the supervisor killed it at a user's wish, empty when it did not.
        hung_for: why it was killed as hung, empty when it was not.
        lost_cards: cards that vanished meanwhile.
        disk_free: bytes where the run is kept; None is unknown.
        peak_rss: the most host memory that the worker was seen with, bytes.
        ram: the machine's memory, bytes.
    """

    run_id: str
    output: Path
    returncode: int | None = None
    exit_: ev.Exit | None = None
    error: ev.ErrorEvent | None = None
    oom_kills: int = 0
    killed_for: str = ""
    hung_for: str = ""
    lost_cards: tuple[str, ...] = ()
    disk_free: int | None = None
    peak_rss: int | None = None
    ram: int | None = None


def name_cause(ending: Ending) -> Cause:
    """The cause of an attempt's end."""
    exit_, resume = ending.exit_, f"llmtui resume {ending.run_id}"
    if exit_ is not None and exit_.outcome == "finished":
        return Cause("finished", exit_.cause, exit_code=0)
    if exit_ is not None and exit_.outcome == "stopped":
        return Cause("stopped", exit_.cause, hint=resume, exit_code=4)
    if ending.lost_cards and not ending.killed_for:
        text = f"{' and '.join(ending.lost_cards)} fell off the bus, and the worker with it"
        return Cause("failed", text, "driver", "look for Xid in dmesg, then reboot; llmtui gpus shows the cards")
    if ending.error is not None:
        return _from_error(ending.error)
    if ending.killed_for:
        return Cause("stopped", ending.killed_for, "killed", resume, 4)
    if ending.hung_for:
        return Cause("failed", ending.hung_for, "hang", resume, again=True)
    if ending.returncode is not None and ending.returncode >= 0:
        return _from_exit_code(ending, read_last_words(ending.output))
    return _from_signal(ending, resume)


def _from_error(error: ev.ErrorEvent) -> Cause:
    """The worker's own words; what only it calls `python` is named when its message says more."""
    text = f"{error.place}: {error.message}" if error.place else error.message
    trouble = known_trouble(error.message) if error.kind == "python" else None
    if trouble is None:
        return Cause("failed", text, error.kind, error.hint, error.exit_code)
    return Cause("failed", f"{trouble.text}: {text}", trouble.kind, trouble.hint, error.exit_code, trouble.again)


def _from_exit_code(ending: Ending, words: LastWords) -> Cause:
    code, logs = ending.returncode, f"llmtui logs {ending.run_id}"
    said = words.error or words.line
    if ending.disk_free is not None and ending.disk_free < _FULL_BYTES:
        trouble = known_trouble("No space left on device")
    else:
        trouble = known_trouble(words.error)
    if trouble is not None:
        return Cause("failed", f"{trouble.text}: {said}" if said else trouble.text, trouble.kind, trouble.hint,
                     again=trouble.again)  # fmt: skip
    if words.error:
        text = f"{words.error} ({words.place})" if words.place else words.error
        return Cause("failed", text, "python", logs, code if code in (2, 3) else 1)
    text = f"the worker ended with exit code {code} and no word" + (f"; its last line: {said}" if said else "")
    return Cause("failed", text, "exit", logs, code if code in (2, 3) else 1, again=code not in (0, 2, 3))


def _from_signal(ending: Ending, resume: str) -> Cause:
    number = -ending.returncode if ending.returncode is not None else None
    if ending.oom_kills and number in (None, signal.SIGKILL):
        held = f"; it held {ending.peak_rss / _GIB:.1f} GiB" if ending.peak_rss else ""
        of = f" of {ending.ram / _GIB:.1f}" if held and ending.ram else ""
        text = f"the machine's memory ran out and the kernel killed the worker (OOM killer){held}{of}"
        return Cause("failed", text, "host_memory", "close other programs, or use a smaller model or batch")
    if number is None:
        return Cause("interrupted", "the worker is gone without a last word", "gone", resume, 4, again=True)
    name = signal_name(number)
    if number in _CRASHES:
        words = read_last_words(ending.output)
        place = f", in {words.place}" if words.place else ""
        trouble = known_trouble(f"{words.error}\n{words.line}")
        text = f"the worker crashed with {name}{place}: {trouble.text if trouble else _CRASHES[signal.Signals(number)]}"
        return Cause("failed", text, trouble.kind if trouble else "signal",
                     f"llmtui logs {ending.run_id} shows its stacks; to go on: {resume}", again=True)  # fmt: skip
    return Cause("interrupted", f"the worker was killed by {name}", "signal", resume, 4, again=number not in _WISHES)


def signal_name(number: int) -> str:
    """Such as `SIGKILL (signal 9)`."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory: in this control group, or else on the machine."""
    own = _own_control_group()
    if own is not None and (count := _counter(own / "memory.events", "oom_kill")) is not None:
        return count + (_counter(Path("/proc/vmstat"), "oom_kill") or 0)
    return _counter(Path("/proc/vmstat"), "oom_kill") or 0


def _own_control_group() -> Path | None:
    """The folder of this process's control group (version 2)."""
    try:
        for line in Path("/proc/self/cgroup").read_text("ascii", "replace").splitlines():
            if line.startswith("0::"):
                return Path("/sys/fs/cgroup") / line[3:].lstrip("/")
    except OSError:
        pass
    return None


def _counter(path: Path, name: str) -> int | None:
    try:
        for line in path.read_text("ascii").splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return None
