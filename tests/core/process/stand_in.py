"""A stand-in worker for tests of the supervisor: does what its script says, with the real event log, locks, requests.

    python -m tests.core.process.stand_in RUN_DIRECTORY ATTEMPT SCRIPT

A script is words: `steps:3 signal:9`. `once:WORD` is obeyed in the first attempt only.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter


class StandIn:
    """One method for each word of a script."""

    def __init__(self, directory: RunDirectory, attempt: int) -> None:
        self.directory, self.attempt, self.step = directory, attempt, 0
        self.log = EventWriter(directory.events)
        self.log.write(ev.WorkerStart(boot_id=boot_id(), attempt=attempt, pid=os.getpid()))

    def play(self, script: str) -> None:
        for word in script.split():
            if word.startswith("once:") and self.attempt > 1:
                continue
            name, _, value = word.removeprefix("once:").partition(":")
            getattr(self, f"do_{name}")(value)

    def do_steps(self, count: str) -> None:
        for _ in range(int(count)):
            self.step += 1
            self.log.write(ev.Step(step=self.step, epoch=0.1, loss=1.0, learning_rate=1e-3, seconds=0.01))

    def do_until_stop(self, accepted: str) -> None:
        """Step until a stop comes; `until_stop:refused` refuses the first and goes on."""
        while not (found := [r for r in requests.pending(self.directory, self.attempt) if r.request != "kill"]):
            self.do_steps("1")
            time.sleep(0.02)
        request = found[0]
        while accepted == "refused" and b'"state":"stopping"' not in self.directory.monitor.read_bytes():
            time.sleep(0.02)
        answer = accepted != "refused"
        text = "" if answer else "no checkpoint could be written"
        self.log.write(ev.Answer(request=request.request, request_id=request.id, accepted=answer, text=text))
        requests.remove(self.directory, request)
        if answer:
            self.log.write(ev.Exit(outcome="stopped", step=self.step, cause=f"stopped at step {self.step}"))
            os._exit(4)

    def do_finish(self, _: str) -> None:
        self.log.write(ev.Exit(outcome="finished", step=self.step))
        os._exit(0)

    def do_error(self, kind: str) -> None:
        message = "CUDA error: unspecified launch failure" if kind == "python" else "it cannot be"
        code = 1 if kind == "python" else 2
        self.log.write(ev.ErrorEvent(kind=kind, message=message, place="row 3", hint="mend it", exit_code=code))
        self.log.write(ev.Exit(outcome="failed", step=self.step, cause=message))
        os._exit(code)

    def do_cards(self, _: str) -> None:
        """Say which cards it was given."""
        print("cards", os.environ["CUDA_DEVICE_ORDER"], os.environ["CUDA_VISIBLE_DEVICES"], flush=True)

    def do_exit(self, code: str) -> None:
        os._exit(int(code))

    def do_say(self, text: str) -> None:
        print(text.replace("_", " "), flush=True)

    def do_raise(self, text: str) -> None:
        raise ValueError(text.replace("_", " "))

    def do_signal(self, number: str) -> None:
        os.kill(os.getpid(), int(number))

    def do_hang(self, _: str) -> None:
        while True:
            time.sleep(1)

    def do_wait(self, name: str) -> None:
        """Until a file of this name is in the run's directory."""
        while not (self.directory.path / name).exists():
            time.sleep(0.02)

    def do_silent(self, _: str) -> None:
        """Ignore SIGTERM and every request."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def do_term(self, _: str) -> None:
        """SIGTERM is a stop, as the real worker has it."""

        def stop(*_: object) -> None:
            self.log.write(ev.Exit(outcome="stopped", step=self.step, cause="stopped by SIGTERM"))
            os._exit(4)

        signal.signal(signal.SIGTERM, stop)

    def do_child(self, kind: str) -> None:
        """Start a process that outlives this one; `child:session` in a session of its own."""
        script = f"import time; time.sleep(300)  # {self.directory.path}"
        subprocess.Popen([sys.executable, "-c", script], start_new_session=kind == "session")


def main() -> None:
    directory, attempt, script = RunDirectory(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    lock = locks.take(directory.worker_lock, "shared")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    print("the worker speaks", flush=True)
    StandIn(directory, attempt).play(script)
    del lock


if __name__ == "__main__":
    main()
