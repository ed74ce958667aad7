"""A stop ends the run for certain: obeyed, else asked again, else killed, and it says what it was and what is left."""

from __future__ import annotations

import os

import pytest

from llmtui.core.errors import RefusedError
from llmtui.core.process.stop import checkpoint, stop, wait_for_answer
from llmtui.core.process.stopping import Escalation, StopLimits, requests_for
from llmtui.core.runs import events as ev
from llmtui.core.runs import requests
from llmtui.core.runs.reader import read_state
from tests.core.process.runs import ended, monitor, new_run, processes_of, spawn, until, until_step, warnings


def test_a_stop_is_obeyed_by_the_worker_and_ends_with_every_process_gone() -> None:
    directory = spawn(new_run(), "until_stop")
    until_step(directory, 2)
    request = stop(directory)
    answer = wait_for_answer(directory, request, 30)
    assert answer is not None
    assert answer.accepted
    state = ended(directory)
    assert (state.state, state.exit_code) == ("stopped", 4)
    assert state.cause.startswith("stopped at step ")
    assert state.cause.endswith("; every process is gone")
    assert any(s.state == "stopping" and "with a checkpoint" in s.cause for s in monitor(directory, ev.StateEvent))
    for ask in (stop, checkpoint):
        with pytest.raises(RefusedError, match="not running"):
            ask(directory)


def test_a_refused_stop_leaves_the_run_running_and_the_next_one_ends_it() -> None:
    directory = spawn(new_run(), "until_stop:refused until_stop")
    until_step(directory, 2)
    request = stop(directory)
    answer = wait_for_answer(directory, request, 30)
    assert answer is not None
    assert not answer.accepted
    until(lambda: read_state(directory).cause == "no checkpoint could be written", "the run to go on")
    assert read_state(directory).state == "running"
    stop(directory, "now")
    assert ended(directory).state == "stopped"


@pytest.mark.parametrize("where", ["group", "session"])
def test_a_kill_is_at_once_and_takes_what_the_worker_started_along(where: str) -> None:
    directory = spawn(new_run(), f"child:{where} steps:1 hang")
    until_step(directory, 1)
    until(lambda: len(processes_of(directory)) == 3, "supervisor, worker and the worker's child")
    request = stop(directory, "kill")
    assert (answer := wait_for_answer(directory, request, 20)) is not None
    assert answer.accepted
    state = ended(directory)
    assert (state.state, state.exit_code) == ("stopped", 4)
    assert "killed on request, without a checkpoint; every process is gone" in state.cause


@pytest.mark.parametrize("how", ["now", "checkpoint"])
def test_a_worker_that_does_not_stop_is_sent_sigterm_then_killed_and_it_is_said(how: str) -> None:
    directory = spawn(new_run(), "silent steps:2 hang")
    until_step(directory, 2)
    stop(directory, how)  # type: ignore[arg-type]
    state = ended(directory)
    assert state.state == "stopped"
    assert ("did not stop within" if how == "now" else "no sign of life") in state.cause
    assert "SIGTERM" in warnings(directory)["stop"]


def test_a_worker_that_hears_only_signals_is_stopped_by_one() -> None:
    directory = spawn(new_run(), "term steps:2 hang")
    until_step(directory, 2)
    stop(directory, "now")
    state = ended(directory)
    assert state.state == "stopped"
    assert state.cause.startswith("stopped by SIGTERM")


def test_what_a_crashed_worker_leaves_behind_is_ended_too() -> None:
    directory = spawn(new_run(), "child:session steps:1 signal:9")
    state = ended(directory)
    assert state.state == "interrupted"
    assert not processes_of(directory)


def test_a_request_to_the_attempt_before_reaches_the_one_that_is_starting() -> None:
    directory = new_run()
    sent = requests.send(directory, "stop", 1)
    (found,) = requests_for(directory, 2)
    assert (found.id, found.attempt, found.request) == (sent.id, 2, "stop")


def test_a_stop_waits_for_silence_and_a_stop_now_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("llmtui.core.process.stopping.time.monotonic", lambda: now[0])
    limits = StopLimits(now_terminate=15, now_kill=30, silent_terminate=120, silent_kill=300)
    patient = Escalation(requests.Request(request="stop", attempt=1), limits, seen=now[0])
    at_once = Escalation(requests.Request(request="stop_now", attempt=1), limits, seen=now[0])
    now[0] += 400
    assert patient.due(quiet_seconds=5) is None  # it is saving a large model
    assert patient.due(quiet_seconds=130) == "terminate"
    assert patient.due(quiet_seconds=200) is None
    assert patient.due(quiet_seconds=301) == "kill"
    assert at_once.due(quiet_seconds=0) == "kill"


def test_a_stale_request_stops_nothing() -> None:
    directory = new_run()
    requests.send(directory, "stop", 0)
    os.utime(directory.requests)
    spawn(directory, "steps:2 finish")
    assert ended(directory).state == "finished"
