"""The supervisor of one run: `python -m llmtui.core.process.supervise RUN_DIRECTORY`.

Holds `supervisor.lock` for its whole life, waits for its cards, starts the worker (or adopts a living one), has it
watched to its end, restarts it after crashes, has the summary written. Killing it changes nothing for the worker.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from llmtui.core.errors import LlmtuiError, MachineError, RefusedError
from llmtui.core.hardware.nvml import NvmlReader
from llmtui.core.preset import Preset, parse_preset
from llmtui.core.process import cards
from llmtui.core.process.causes import Cause
from llmtui.core.process.finding import find_worker
from llmtui.core.process.journal import Journal
from llmtui.core.process.queue import Turn, Want, wait_for_turn
from llmtui.core.process.restarting import FIRST_PAUSE, Restarts
from llmtui.core.process.spawning import say_error, say_ready
from llmtui.core.process.starting import changed_versions, describe_attempt
from llmtui.core.process.stopping import StopLimits, requests_for
from llmtui.core.process.summarizing import write_summary
from llmtui.core.process.watching import Left, Watch
from llmtui.core.process.worker_process import WorkerProcess, worker_command, worker_environment
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo, read_attempt, write_attempt
from llmtui.core.runs.checkpoints import find_valid
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state


class Supervisor:
    """One run's supervisor; whoever makes one holds `supervisor.lock`.

    Args:
        command: makes the worker's command line for an attempt; None is the real one.
        first_pause: seconds before the first restart.
        limits: when a stop that is not obeyed becomes a kill.
        working_folder: where the user stood, for the git state.
        nvml: the cards; None opens NVML.
    """

    def __init__(
        self, directory: RunDirectory, command: Callable[[RunDirectory, int], list[str]] | None = None, *,
        first_pause: float = FIRST_PAUSE, limits: StopLimits | None = None, working_folder: Path | None = None,
        nvml: NvmlReader | None = None,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.leaving = False
        """Set when the supervisor is to go without its worker."""
        self._command = command or worker_command
        self._limits = limits
        self._working_folder = working_folder
        self._preset: Preset = parse_preset(directory.preset_text(), directory.preset).preset
        self._restarts = Restarts(self._preset, first_pause)
        self._journal = Journal(directory)
        self._nvml = nvml if nvml is not None else NvmlReader()
        self._claims = cards.Claims()
        self._furthest = 0
        self._stopping = False
        self._journal.write(ev.SupervisorStart(boot_id=boot_id(), pid=os.getpid()))

    # --- the run from start to end ------------------------------------------------------------------

    def run(self, *, adopt: bool = False) -> int:
        """Supervise to the end; the run's exit code.

        Args:
            adopt: a worker lives already (or did, a moment ago): begin with that one.
        """
        try:
            cause = self._to_the_end(adopt)
        except Left:
            return self._leave()
        except LlmtuiError as error:
            text = f"{error.place}: {error.message}" if error.place else error.message
            cause = Cause("failed", text, error.kind, error.hint, error.exit_code)
        except Exception as error:
            traceback.print_exc()
            if locks.is_held(self.directory.worker_lock):
                return 1  # the worker goes on, and the next command's supervisor adopts it
            cause = Cause("failed", f"the supervisor failed: {type(error).__name__}: {error}", "supervisor",
                          f"supervisor.log in {self.directory.path} has the traceback")  # fmt: skip
        self._claims.release()
        self._journal.state(cause.state, cause.text, cause.kind, cause.hint, cause.exit_code)
        self._summarize()
        self._journal.close()
        return cause.exit_code

    def announce(self) -> None:
        """The state before anything is done, so that no reader takes an earlier attempt's end for this one's."""
        self._journal.state("starting")

    def _to_the_end(self, adopt: bool) -> Cause:
        cause = self._adopt() if adopt else self._attempt()
        while (pause := self._pause_after(cause)) is not None:
            text = f"{cause.text}; restart {self._restarts.count} of {self._restarts.limit} in {pause:g} s"
            self._journal.state("starting", text, cause.kind)
            if self._wait(pause):
                return Cause("stopped", f"stopped while waiting for a restart ({cause.text})", "stopped",
                             f"llmtui resume {self.directory.id}", 4)  # fmt: skip
            cause = self._attempt()
        return cause

    def _pause_after(self, cause: Cause) -> float | None:
        return None if self._stopping else self._restarts.pause_before_next(cause, self._furthest)

    def _wait(self, seconds: float) -> bool:
        """Wait; True when a stop was asked for meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._stop_before_start():
                return True
            time.sleep(0.1)
        return False

    def _stop_before_start(self) -> bool:
        """Whether a stop was asked for while no worker lives; what was asked is answered.

        Raises:
            Left: the supervisor was told to go.
        """
        if self.leaving:
            raise Left
        stopped = False
        for request in requests_for(self.directory, self.directory.last_attempt()):
            accepted = request.request != "checkpoint"
            stopped = stopped or accepted
            text = "stopped before it started" if accepted else "there is nothing to save yet"
            self._journal.write(ev.Answer(request=request.request, request_id=request.id, accepted=accepted, text=text))
            requests.remove(self.directory, request)
        return stopped

    # --- one attempt --------------------------------------------------------------------------------

    def _attempt(self) -> Cause:
        """One worker from its start to its end."""
        self._journal.state("starting")
        turn = self._cards()
        if turn is None or self._stop_before_start():
            return Cause("stopped", "taken out of the queue" if turn is None else "stopped before it started",
                         "stopped", f"llmtui resume {self.directory.id}", 4)  # fmt: skip
        self._claims.hold(turn.locks)
        try:
            info = self._write_attempt(turn)
            offset = self.directory.events.stat().st_size if self.directory.events.exists() else 0
            uuids = [card.uuid for card in turn.cards]
            worker = WorkerProcess.start(
                self._command(self.directory, info.attempt), self.directory,
                worker_environment(self.directory, uuids, os.environ), turn.locks,
            )  # fmt: skip
            self._journal.write(
                ev.Attempt(attempt=info.attempt, from_step=info.from_step, checkpoint=info.checkpoint or "",
                           pid=worker.pid, gpus=uuids)
            )  # fmt: skip
            self._journal.state("running")
            return self._watch(worker, info.attempt, uuids, offset)
        finally:
            self._claims.release()

    def _write_attempt(self, turn: Turn) -> AttemptInfo:
        directory, number = self.directory, self.directory.last_attempt() + 1
        found = find_valid(directory)
        for sentence in found.passed_over:
            self._journal.warn("checkpoint", sentence)
        gpus = [AttemptGpu(index=c.index, uuid=c.uuid, name=c.name) for c in turn.cards]
        info = describe_attempt(directory, number, found, gpus, self._nvml.driver, self._working_folder)
        if changes := changed_versions(directory, info):
            self._journal.warn("versions", changes)
        write_attempt(directory, info)
        return info

    def _watch(self, worker: WorkerProcess, attempt: int, uuids: Sequence[str], offset: int) -> Cause:
        watch = Watch(
            worker, attempt, self._preset, self._journal, self._nvml, uuids=uuids, offset=offset,
            limits=self._limits, leaving=self._tick,
        )  # fmt: skip
        try:
            return watch.to_the_end()
        finally:
            self._furthest = max(self._furthest, watch.steps)
            self._stopping = self._stopping or watch.stopping

    def _tick(self) -> bool:
        self._claims.keep_fresh()
        return self.leaving

    def _adopt(self) -> Cause:
        """Go on watching a worker whose supervisor was killed."""
        worker, attempt = find_worker(self.directory)
        self._journal.state("running", "adopted after the supervisor was killed")
        try:
            uuids = [gpu.uuid for gpu in read_attempt(self.directory, attempt).gpus]
        except LlmtuiError:
            uuids = []
        return self._watch(worker, attempt, uuids, 0)

    # --- cards ------------------------------------------------------------------------------------

    def _cards(self) -> Turn | None:
        """The cards to use (none: the CPU), waiting in the queue if need be; None when the waiting was ended."""
        split = self._preset.gpu_split
        ranked = self._look()
        if not ranked:
            return Turn((), ())
        several = isinstance(split.gpus, list)
        if split.share:
            return Turn(tuple(ranked if several else ranked[:1]), ())
        want = Want([card.uuid for card in ranked], several, self._needed())
        try:
            turn = wait_for_turn(
                self.directory, want, self._look, say=lambda why: self._journal.state("queued", why),
                give_up=self._stop_before_start,
            )  # fmt: skip
        except OSError as error:
            place = f"{error.filename or cards.CLAIMS}: {error.strerror}"
            self._journal.warn("claims", f"the card cannot be claimed for this run alone ({place})")
            turn = Turn(tuple(ranked if several else ranked[:1]), ())
        for card in turn.cards if turn else ():
            if card.used and card.total and card.used > cards.BUSY_BYTES:
                text = f"GPU {card.index} has {card.used >> 20} of {card.total >> 20} MiB in use by others already"
                self._journal.warn("gpu_shared", text)
        return turn

    def _look(self) -> list[ev.HardwareGpu]:
        return cards.candidates(self._preset.gpu_split, self._nvml.memory(), self._nvml.note)

    def _needed(self) -> int | None:
        """About how much memory the run takes on a card; None when the forecast does not know."""
        from llmtui.core.forecast import forecast

        try:
            return forecast(self._preset, self.directory.path, ()).process
        except (LlmtuiError, OSError, ValueError):
            return None

    # --- the end ------------------------------------------------------------------------------------

    def _leave(self) -> int:
        """Told to go (a logout, a shutdown): the worker, if there is one, goes on."""
        if locks.is_held(self.directory.worker_lock):
            self._journal.warn("supervisor", "the supervisor was ended by SIGTERM; the worker goes on, and the next "
                                             "llmtui command watches it again")  # fmt: skip
        else:
            text = "the supervisor was ended by SIGTERM before the worker started"
            self._journal.state("interrupted", text, "signal", f"llmtui resume {self.directory.id}", 4)
        self._journal.close()
        return 0

    def _summarize(self) -> None:
        if problem := write_summary(self.directory):
            self._journal.warn("summary", f"the summary could not be written: {problem}")


def supervise(
    directory: RunDirectory, working_folder: Path | None, ready: Callable[[], None], *, adopt: bool = False
) -> int:
    """Take the lock and supervise; the run's exit code.

    Args:
        ready: called when the lock is held and the state says so.
        adopt: only the worker that lives, or did a moment ago, is to be watched; none is to be started in its place.

    Raises:
        RefusedError: another supervisor has the run, or it has finished meanwhile.
        LlmtuiError: its preset cannot be read.
    """
    with locks.take(directory.supervisor_lock):
        if not (living := locks.is_held(directory.worker_lock)):
            state = read_state(directory)
            if state.state == "finished":
                if directory.summary_json.exists():
                    raise RefusedError(f"{directory.id} has finished: nothing is left to train", place=directory.id)
                return _close(directory, ready)
        adopt = adopt or living
        if not adopt:
            requests.clear(directory)  # they were for an earlier life
        supervisor = Supervisor(directory, working_folder=working_folder)

        def leave(_number: int, _frame: FrameType | None) -> None:
            supervisor.leaving = True

        signal.signal(signal.SIGTERM, leave)
        if not adopt:
            supervisor.announce()
        ready()
        return supervisor.run(adopt=adopt)


def _close(directory: RunDirectory, ready: Callable[[], None]) -> int:
    """The worker finished while it had no supervisor: only the summary is missing."""
    journal = Journal(directory)
    journal.write(ev.SupervisorStart(boot_id=boot_id(), pid=os.getpid()))
    journal.state("finished", "the supervisor was killed before the run ended", exit_code=0)
    ready()
    if problem := write_summary(directory):
        journal.warn("summary", f"the summary could not be written: {problem}")
    journal.close()
    return 0


def main() -> int:
    """Entry of the supervisor's process: forks once more, so that it is nobody's child."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--ready", type=int, help="descriptor that is told when it has started, or why not")
    parser.add_argument("--adopt", action="store_true", help="only watch the worker that lives already")
    parser.add_argument("--from", dest="working_folder", type=Path, help="where the user stood")
    options = parser.parse_args()
    if options.ready is not None and os.fork():
        os._exit(0)
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    directory = RunDirectory(options.run)

    def ready() -> None:
        if options.ready is not None:
            say_ready(options.ready)
            options.ready = None

    try:
        return supervise(directory, options.working_folder, ready, adopt=options.adopt)
    except (LlmtuiError, OSError, UnicodeDecodeError) as error:
        told = error if isinstance(error, LlmtuiError) else MachineError(f"the supervisor cannot start: {error}",
                                                                         place=directory.id)  # fmt: skip
        print(told, file=sys.stderr)  # noqa: T201
        if options.ready is not None:
            say_error(options.ready, told)
        return told.exit_code


if __name__ == "__main__":
    sys.exit(main())
