"""A run outlives every terminal, a killed worker resumes the same curve, a killed supervisor is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from llmtui.core.runs.reader import read_state
from tests.e2e.product import (
    LLMTUI,
    SHORT,
    curve,
    llmtui,
    llmtui_json,
    start,
    wait_for,
    wait_for_step,
    wait_until_final,
    worker_pid,
)

pytestmark = pytest.mark.slow


def test_a_killed_terminal_changes_nothing_and_all_readings_tell_the_same_story() -> None:
    directory = start("demo", *SHORT)
    watcher = subprocess.Popen(
        [LLMTUI, "logs", "last", "-f"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
    follower = subprocess.Popen(
        ["script", "-qec", f"{LLMTUI} attach {directory.id}", "/dev/null"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    wait_for_step(directory, 5)
    for process in (watcher, follower):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    state = wait_until_final(directory)
    assert state.state == "finished", state.cause
    assert state.step == 40

    (listed,) = llmtui_json("ls")
    shown = llmtui_json("show", "last")
    exported = json.loads(llmtui("export", "last", "--format", "json"))
    for key in ("id", "state", "step", "total_steps", "loss", "it_per_second", "overall_it_per_second"):
        assert listed[key] == shown[key] == exported[key], key
    assert shown["exit_code"] == 0
    assert (directory.path / "summary.md").is_file()


def test_a_worker_killed_in_the_middle_resumes_to_the_same_losses_digit_by_digit() -> None:
    sets = (*SHORT, "limits.restarts=0")
    whole = start("demo", *sets, name="whole")
    wait_until_final(whole)
    broken = start("demo", *sets, name="broken")
    wait_for_step(broken, 23)
    os.kill(worker_pid(broken), signal.SIGKILL)
    state = wait_until_final(broken)
    assert state.state in ("failed", "interrupted")
    assert "SIGKILL" in state.cause or "signal 9" in state.cause, state.cause
    assert state.step < 40
    llmtui("resume", broken.id)
    assert read_state(broken).state == "finished"
    expected, got = curve(whole), curve(broken)
    assert list(got) == list(expected) == list(range(1, 41))
    assert got == expected


def test_stop_keeps_a_checkpoint_and_resume_goes_on() -> None:
    directory = start("demo", *SHORT)
    wait_for_step(directory, 3)
    llmtui("stop", "last")
    state = read_state(directory)
    assert state.state == "stopped"
    assert not state.alive
    assert state.checkpoints[-1].step == state.step
    llmtui("resume", "last")
    assert read_state(directory).state == "finished"
    llmtui("resume", "last", code=5)  # nothing left to train


def test_a_killed_supervisor_is_replaced_and_the_worker_never_notices() -> None:
    directory = start("demo", *SHORT)
    wait_for_step(directory, 3)
    pid = worker_pid(directory)
    from llmtui.core.runs import events as ev
    from llmtui.core.runs.log import EventReader

    supervisor = next(e.pid for e in EventReader(directory.monitor).read_new() if isinstance(e, ev.SupervisorStart))
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not read_state(directory).liveness.supervisor, "the supervisor's end")
    assert read_state(directory).liveness.worker
    llmtui("ls")
    wait_for(lambda: read_state(directory).liveness.supervisor, "an adopting supervisor")
    assert worker_pid(directory) == pid
    state = wait_until_final(directory)
    assert state.state == "finished"
    assert (directory.path / "summary.json").is_file()


def test_two_resumes_at_once_give_one_run_and_one_sentence() -> None:
    directory = start("demo", *SHORT)
    wait_for_step(directory, 3)
    llmtui("stop", "last")
    both = [
        subprocess.Popen([LLMTUI, "resume", directory.id, "--detach"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    codes = sorted(process.wait() for process in both)
    assert codes == [0, 5], [p.stdout.read() for p in both if p.stdout]
    assert wait_until_final(directory).state == "finished"
