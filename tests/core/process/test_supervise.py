"""The supervisor names how a run ended, restarts what may be restarted, is small, and never takes the worker along."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from llmtui.core.process.stop import stop, wait_until_ended
from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.attempt import read_attempt
from llmtui.core.runs.reader import read_state
from tests.core.process.runs import (
    ended,
    monitor,
    new_run,
    spawn,
    supervisor_pid,
    until,
    until_step,
    warnings,
    worker_pid,
)


@pytest.mark.parametrize(
    ("script", "state", "code", "words"),
    [
        ("steps:3 finish", "finished", 0, ""),
        ("steps:3 error:data", "failed", 2, "row 3: it cannot be"),
        ("say:boom_[x] exit:7", "failed", 1, "exit code 7 and no word; its last line: boom [x]"),
        ("raise:boom_[x]", "failed", 1, "ValueError: boom [x] (stand_in.py, line "),
        ("exit:3", "failed", 3, "exit code 3"),
        ("steps:1 signal:6", "failed", 1, "crashed with SIGABRT (signal 6)"),
        ("steps:1 signal:11", "failed", 1, "crashed with SIGSEGV (signal 11)"),
        ("steps:1 signal:9", "interrupted", 4, "killed by SIGKILL (signal 9)"),
        ("steps:1 signal:15", "interrupted", 4, "killed by SIGTERM (signal 15)"),
    ],
)
def test_the_cause_of_the_end_is_named(script: str, state: str, code: int, words: str) -> None:
    directory = spawn(new_run(), script)
    got = ended(directory)
    assert (got.state, got.exit_code) == (state, code)
    assert words in got.cause
    assert (f"llmtui resume {directory.id}" in got.hint) == (state == "interrupted" or "crashed" in got.cause)


def test_a_crash_is_restarted_and_says_so() -> None:
    directory = spawn(new_run(limits={"restarts": 2}), "steps:2 once:signal:9 finish")
    got = ended(directory)
    assert (got.state, got.attempt) == ("finished", 2)
    assert any("killed by SIGKILL (signal 9); restart 1 of 2" in s.cause for s in monitor(directory, ev.StateEvent))


@pytest.mark.parametrize(
    ("script", "sections", "attempts"),
    [
        ("signal:9", {"limits": {"restarts": 5}}, 2),  # without a step in between once more is enough
        ("steps:1 once:signal:9 steps:1 signal:9", {"limits": {"restarts": 1}}, 2),
        ("error:data", {"limits": {"restarts": 5}}, 1),
        ("steps:3 error:python", {"limits": {"restarts": 5}}, 2),  # a CUDA error that comes back at the same step
        ("steps:3 raise:boom", {"limits": {"restarts": 5}}, 1),
        ("steps:1 signal:9", {"limits": {"restarts": 5}, "checkpoints": {"resume": "never"}}, 1),
        ("steps:1 signal:15", {"limits": {"restarts": 5}}, 1),  # somebody meant it
        ("exit:2", {"limits": {"restarts": 5}}, 1),
    ],
)
def test_what_will_only_repeat_is_not_repeated(script: str, sections: dict[str, object], attempts: int) -> None:
    directory = spawn(new_run(**sections), script)
    ended(directory)
    assert len(monitor(directory, ev.Attempt)) == attempts


def test_a_stop_during_the_pause_before_a_restart_is_obeyed() -> None:
    directory = spawn(new_run(limits={"restarts": 9}), "steps:1 signal:9")
    until(lambda: any("restart 1" in s.cause for s in monitor(directory, ev.StateEvent)), "the pause")
    stop(directory)
    got = ended(directory)
    assert got.state in ("stopped", "interrupted")
    if got.state == "stopped":
        assert "waiting for a restart" in got.cause or "before it started" in got.cause


def test_a_hang_is_seen_with_its_stacks_and_restarted_when_the_preset_says_so() -> None:
    sections = {"limits": {"no_step_minutes": 0.02, "on_hang": "restart", "restarts": 1}}
    directory = spawn(new_run(**sections), "steps:2 once:hang finish")
    got = ended(directory)
    assert (got.state, got.attempt) == ("finished", 2)
    warning = warnings(directory)["hang"]
    assert "its stacks are in stacks-" in warning
    (stacks,) = directory.path.glob("stacks-*.txt")
    assert "do_hang" in stacks.read_text()
    assert any("it hung" in s.cause and "restart 1 of 1" in s.cause for s in monitor(directory, ev.StateEvent))


def test_a_stopped_worker_is_named_as_such_and_waited_for() -> None:
    directory = spawn(new_run(limits={"no_step_minutes": 0.02}), "steps:2 until_stop")
    until_step(directory, 2)
    os.kill(worker_pid(directory), signal.SIGSTOP)
    until(lambda: "hang" in warnings(directory), "the warning")
    assert "stopped by a signal" in warnings(directory)["hang"]
    os.kill(worker_pid(directory), signal.SIGCONT)
    stop(directory)
    assert ended(directory).state == "stopped"


def test_sigterm_to_the_supervisor_leaves_the_worker_running() -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 2)
    supervisor, worker = psutil.Process(supervisor_pid(directory)), psutil.Process(worker_pid(directory))
    supervisor.terminate()
    until(lambda: not read_state(directory).liveness.supervisor, "the supervisor's end")
    assert worker.is_running()
    assert "the worker goes on" in warnings(directory)["supervisor"]
    before = read_state(directory).step
    until_step(directory, before + 3)
    requests.send(directory, "stop", 1)
    until(lambda: not worker.is_running(), "the end")
    assert read_state(directory).state == "stopped"  # by the worker's own word


def test_hang_ups_and_keyboard_interrupts_do_not_reach_the_supervisor() -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 1)
    for number in (signal.SIGHUP, signal.SIGINT):
        os.kill(supervisor_pid(directory), number)
    before = read_state(directory).step
    until_step(directory, before + 5)
    assert read_state(directory).liveness.supervisor
    stop(directory)
    assert ended(directory).state == "stopped"


def test_an_attempt_writes_down_what_it_runs_with() -> None:
    directory = spawn(new_run(), "finish")
    ended(directory)
    info = read_attempt(directory, 1)
    assert info.versions["torch"]
    assert info.python.count(".") == 2
    assert info.gpus == []
    assert len(info.git["commit"]) == 40  # the tests stand in a repository


def test_an_upgrade_between_two_attempts_is_named() -> None:
    directory = spawn(new_run(), "exit:2")
    ended(directory)
    path = directory.attempt_file(1)
    path.write_text(path.read_text().replace("torch: ", "torch: 1.0-"))
    spawn(directory, "finish")
    ended(directory)
    assert "torch 1.0-" in warnings(directory)["versions"]


def test_the_summary_is_written_when_all_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_SUMMARY", "1")
    directory = spawn(new_run(), "steps:3 finish")
    state = wait_until_ended(directory, 90)
    assert state.state == "finished"
    assert directory.summary_json.exists()
    assert "summary" not in warnings(directory)


def test_the_supervisor_is_small_and_quiet() -> None:
    directory = spawn(new_run(), "steps:1 hang")
    until_step(directory, 1)
    watched = psutil.Process(supervisor_pid(directory))
    until(lambda: len(monitor(directory, ev.Hardware)) >= 2, "samples")
    before, begin = watched.cpu_times(), time.monotonic()
    time.sleep(4)  # what is measured is time itself
    after = watched.cpu_times()
    share = (after.user + after.system - before.user - before.system) / (time.monotonic() - begin)
    assert watched.memory_info().rss < 60 << 20
    assert share < 0.02  # the budget of 0.5 % is for a quiet machine; clock ticks of 10 ms are coarse here
    stop(directory, "kill")
    ended(directory)
