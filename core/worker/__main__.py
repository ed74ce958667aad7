"""Entry of a worker process: `python -m llmtui.core.worker RUN_DIRECTORY ATTEMPT`.

Exit codes: 0 finished, 4 stopped, 2 preset or data, 3 machine, 1 failed.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

from llmtui.core.errors import LlmtuiError
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.attempt import read_attempt
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.worker.session import Session, StopRequested


def quiet() -> None:
    """What libraries print per layer, step or file would fill output.log."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("BITSANDBYTES_NOWELCOME", "1")
    warnings.filterwarnings("ignore", message=".*MatMul8bitLt.*")
    warnings.filterwarnings("ignore", message=".*cast from.*")
    for name in ("bitsandbytes", "bitsandbytes.autograd._functions", "torch.distributed.elastic", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)


def _work(session: Session, number: int) -> tuple[str, str]:
    """Outcome and cause."""
    import xxhash

    from llmtui.core.preset import parse_preset

    directory = session.directory
    session.phase("loading_model", text="libraries")
    attempt = read_attempt(directory, number)
    text = directory.preset_text()
    preset = parse_preset(text, directory.preset).preset
    session.step = attempt.from_step or 0
    from llmtui.core.worker.finetune import Finetune

    task = Finetune(session, preset, attempt, xxhash.xxh3_128_hexdigest(text.encode()))
    task.run()
    return task.outcome, task.cause


def _run(session: Session, number: int) -> int:
    try:
        outcome, cause = _work(session, number)
        session.answer_too_late()
        session.write(ev.Exit(outcome=outcome, step=session.step, cause=cause))  # type: ignore[arg-type]
        return 0 if outcome == "finished" else 4
    except StopRequested:
        session.write(ev.Exit(outcome="stopped", step=session.step, cause="stopped before the first step"))
        return 4
    except BaseException as raised:
        session.now_to_save()  # no more: the watching thread has nothing to do with a failure
        with suppress(OSError):  # output.log may be on the disk that is full
            traceback.print_exc()
        from llmtui.core.worker.failures import as_llmtui_error, error_event

        error = as_llmtui_error(raised)
        session.write(error_event(error))
        session.answer_too_late()
        session.write(ev.Exit(outcome="failed", step=session.step, cause=error.message))
        return error.exit_code


def main() -> int:
    """Run one attempt; holds `worker.lock` shared for its life."""
    quiet()
    directory, number = RunDirectory(Path(sys.argv[1])), int(sys.argv[2])
    try:
        lock = locks.take(directory.worker_lock, "shared")
    except LlmtuiError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    session = Session(directory, number)
    session.listen()
    try:
        return _run(session, number)
    finally:
        session.close()
        del lock


if __name__ == "__main__":
    code = main()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)  # libraries' exit handlers and stuck threads must not hold the GPU
