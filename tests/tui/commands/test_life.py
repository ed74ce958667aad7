"""The life of a run through its commands alone: follow, detach, save, stop, resume, hand over, delete."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llmtui.core.home import runs_folder
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from tests.e2e.product import SHORT, wait_for
from tests.tui.commands.command import llmtui

pytestmark = pytest.mark.timeout(240)
COMMAND = [sys.executable, "-m", "llmtui.tui.commands"]


def run_arguments(*sets: str) -> list[str]:
    """A short run of the demo on the CPU."""
    arguments = ["run", "demo", "--name", "life"]
    for assignment in (*SHORT, "gpu_split.gpus=none", "training.sample_prompts=[What is the island called?]", *sets):
        arguments += ["--set", assignment]
    return arguments


def the_run() -> RunDirectory:
    """The only run there is."""
    (path,) = runs_folder().iterdir()
    return RunDirectory(path)


class Following:
    """A command whose lines are read while it runs."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def end(self) -> int:
        """Wait for its end; the exit code."""
        code = self.process.wait(timeout=120)
        self._thread.join(timeout=10)
        return code

    @property
    def text(self) -> str:
        """Everything said so far."""
        return "\n".join(self.lines)


def test_follow_detach_stop_resume_export_delete(tmp_path: Path) -> None:
    following = Following(run_arguments("training.max_steps=400", "dataset.limit=2000", "checkpoints.save_steps=5"))
    wait_for(lambda: "  saved checkpoints/checkpoint-5" in following.text, "the first checkpoint to be said")
    following.process.send_signal(signal.SIGINT)
    assert following.end() == 130
    run = the_run()
    for words in (f"{run.id} running", "rows to train on", "parameters trained on cpu", "/400  loss", "left, done",
                  "at step 0: What is the island called?", "goes on without this terminal",
                  f"llmtui attach {run.id}", f"llmtui stop {run.id}"):  # fmt: skip
        assert words in following.text, following.text
    assert read_state(run).alive, "Ctrl-C reaches the terminal's process only"

    saved = llmtui("checkpoint", "life")
    assert saved.code == 0, saved
    stopped = llmtui("stop", "life")
    assert stopped.code == 0 and f"{run.id} stopped at step" in stopped.out, stopped
    assert stopped.out.count("every process is gone") == 1 and f"llmtui resume {run.id}" in stopped.out
    state = read_state(run)
    assert not state.alive and state.state == "stopped"
    assert state.checkpoints[-1].step == state.step
    assert llmtui("wait", "life").code == 4
    assert f"To go on from the last checkpoint:\n\n```sh\nllmtui resume {run.id}" in llmtui("export", "life").out

    begun = llmtui("resume", "life", "--detach", "--json")
    assert (begun.code, begun.json["id"]) == (0, run.id)
    wait_for(lambda: read_state(run).step > state.step, "a step after the resume")
    killed = llmtui("stop", "life", "--kill", "--json")
    assert (killed.code, killed.json["alive"]) == (0, False)
    assert llmtui("rm", run.id, "--yes").code == 0
    assert not run.path.exists() and list(runs_folder().iterdir()) == []


def test_json_lines_to_the_end_and_one_story_after_it() -> None:
    done = llmtui(
        *run_arguments("training.max_steps=12", "training.eval_steps=6", "checkpoints.save_steps=6"), "--json"
    )
    assert done.code == 0, done
    lines = [json.loads(line) for line in done.out.splitlines()]
    kinds = {line["type"] for line in lines}
    assert {"state", "phase", "plan", "step", "eval", "checkpoint", "sample", "end"} <= kinds
    end, run = lines[-1], the_run()
    assert (end["type"], end["state"], end["exit_code"], end["step"]) == ("end", "finished", 0, 12)
    assert [line["step"] for line in lines if line["type"] == "eval"] == [6, 12]
    (row,) = llmtui("ls", "--json").json
    shown, exported = llmtui("show", "last", "--json").json, llmtui("export", "last", "--format", "json").json
    written = json.loads((run.path / "summary.json").read_bytes())
    assert shown == exported == written
    assert row == {name: shown[name] for name in row}
    assert shown["result"]["step"] == 12 and len(shown["samples"]) >= 2
    assert {name: end[name] for name in ("id", "loss", "eval_loss")} == {n: row[n] for n in ("id", "loss", "eval_loss")}
    assert llmtui("resume", "last").code == 5, "nothing is left to train"


def test_deleting_asks_for_the_name_on_a_terminal() -> None:
    from tests.core.runs.whole_run import make_run

    run = make_run(runs_folder())
    for answer, deleted in ((b"yes\n", False), (b"night\n", True)):
        leader, follower = pty.openpty()
        process = subprocess.Popen([*COMMAND, "rm", run.id], stdin=follower, stdout=follower, stderr=follower)
        os.close(follower)
        os.write(leader, answer)
        process.wait(timeout=60)
        os.close(leader)
        assert run.path.exists() is not deleted
        assert process.returncode == (0 if deleted else 5)
