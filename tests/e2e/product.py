"""The product as a user has it: the installed command, real runs, conditions to wait for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llmtui.core.home import runs_folder
from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventReader
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState

LLMTUI = str(Path(sys.executable).parent / "llmtui")


def llmtui(*arguments: str, code: int | None = 0, limit: float = 240.0) -> str:
    """Run a command to its end and give its output; `code` None allows any exit code."""
    done = subprocess.run(
        [LLMTUI, *arguments], capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL, check=False
    )
    if code is not None:
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def llmtui_json(*arguments: str, code: int | None = 0) -> Any:
    """The same with `--json`, parsed."""
    return json.loads(llmtui(*arguments, "--json", code=code))


def start(preset: str, *sets: str, name: str | None = None) -> RunDirectory:
    """Start a detached run through the command."""
    arguments = ["run", preset, "--detach"]
    for assignment in sets:
        arguments += ["--set", assignment]
    if name:
        arguments += ["--name", name]
    return RunDirectory(runs_folder() / llmtui_json(*arguments)["id"])


def wait_for(condition: Callable[[], Any], what: str, limit: float = 120.0) -> Any:
    """Wait until the condition gives something true."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {limit} s in vain for: {what}"
        time.sleep(0.05)
    return value


def wait_until_final(directory: RunDirectory, limit: float = 240.0) -> RunState:
    """Wait until no process of the run lives."""

    def ended() -> RunState | None:
        state = read_state(directory)
        return state if state.final and not state.alive else None

    state: RunState = wait_for(ended, f"the end of {directory.id}", limit)
    return state


def wait_for_step(directory: RunDirectory, step: int, limit: float = 120.0) -> None:
    """Wait until this step is in the event log."""
    wait_for(lambda: read_state(directory).step >= step, f"step {step} of {directory.id}", limit)


def curve(directory: RunDirectory) -> dict[int, tuple[float | None, float]]:
    """Loss and learning rate by step; a step run twice counts as it was run last."""
    steps = (e for e in EventReader(directory.events).read_new() if isinstance(e, ev.Step))
    return {e.step: (e.loss, e.learning_rate) for e in steps}


def worker_pid(directory: RunDirectory) -> int:
    """The pid of the newest attempt's worker, as it wrote it itself."""
    starts = [e for e in EventReader(directory.events).read_new() if isinstance(e, ev.WorkerStart)]
    return starts[-1].pid


# A preset that trains the bundled demo model for a few steps: the whole path in about fifteen seconds.
SHORT = (
    "training.max_steps=40",
    "training.eval_steps=20",
    "checkpoints.save_steps=10",
    "training.per_device_train_batch_size=8",
    "dataset.limit=200",
    "dataset.val_size=20",
    "training.sample_prompts=[]",
)
