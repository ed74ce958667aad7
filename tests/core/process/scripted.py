"""A stand-in worker for tests of the supervisor: does what its script says, with the real event log and locks."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter


def main() -> None:
    directory, attempt, script = RunDirectory(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    lock = locks.take(directory.worker_lock, "shared")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log = EventWriter(directory.events)
    log.write(ev.WorkerStart(boot_id=boot_id(), attempt=attempt, pid=os.getpid()))
    print("the worker speaks", flush=True)
    step = 0
    for word in script.split():
        action, _, value = word.partition(":")
        if action == "steps":
            for _ in range(int(value)):
                step += 1
                log.write(ev.Step(step=step, epoch=0.1, loss=1.0, learning_rate=1e-3, seconds=0.01))
        elif action == "until_stop":
            while not (found := [r for r in requests.pending(directory, attempt) if r.request != "kill"]):
                step += 1
                log.write(ev.Step(step=step, epoch=0.1, loss=1.0, learning_rate=1e-3, seconds=0.01))
                time.sleep(0.02)
            log.write(ev.Answer(request=found[0].request, request_id=found[0].id, accepted=True))
            requests.remove(directory, found[0])
            log.write(ev.Exit(outcome="stopped", step=step, cause=f"stopped at step {step}"))
            os._exit(4)
        elif action == "finish":
            log.write(ev.Exit(outcome="finished", step=step))
            os._exit(0)
        elif action == "error":
            log.write(ev.ErrorEvent(kind=value, message="it cannot be", place="row 3", hint="mend it", exit_code=2))
            log.write(ev.Exit(outcome="failed", step=step, cause="it cannot be"))
            os._exit(2)
        elif action == "exit":
            print("boom [x]", flush=True)
            os._exit(int(value))
        elif action == "signal":
            os.kill(os.getpid(), int(value))
        elif action == "hang":
            while True:
                time.sleep(1)
        elif action == "once":  # "once:signal:9" in the first attempt only
            if attempt == 1:
                os.kill(os.getpid(), int(value.partition(":")[2]))
        elif action == "child":
            os.spawnlp(
                os.P_NOWAIT, sys.executable, sys.executable, "-c", f"import time; time.sleep(300)  # {directory.path}"
            )
    del lock


if __name__ == "__main__":
    main()
