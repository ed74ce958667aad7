"""Hangs: counted by progress of any kind, found once, described from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from llmtui.core.process import hang
from llmtui.core.process.hang import HangWatch, describe_hang, dump_stacks
from tests.core.process.runs import new_run, until

ANSWERS = "import faulthandler, signal, sys; faulthandler.register(signal.SIGUSR1); print('ready', flush=True); input()"
IS_DEAF = "print('ready', flush=True); input()"


def test_only_silence_after_the_first_step_is_a_hang_and_it_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("llmtui.core.process.hang.time.monotonic", lambda: now[0])
    watch = HangWatch(minutes=1)
    now[0] = 3600  # loading takes as long as it likes
    assert not watch.newly_hung()
    watch.progress(step=True)
    now[0] += 59
    assert not watch.newly_hung()
    watch.progress()  # an evaluation goes on
    now[0] += 59
    assert not watch.newly_hung()
    now[0] += 2
    assert watch.newly_hung()
    assert not watch.newly_hung()
    watch.progress(step=True)
    now[0] += 61
    assert watch.newly_hung()


def test_without_a_limit_nothing_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = HangWatch(None)
    watch.progress(step=True)
    monkeypatch.setattr("llmtui.core.process.hang.time.monotonic", lambda: 1e9)
    assert not watch.newly_hung()


@pytest.mark.parametrize("code", [ANSWERS, IS_DEAF])
def test_only_a_process_that_catches_the_signal_is_asked(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(hang.shutil, "which", lambda _: None)
    directory = new_run()
    with directory.output.open("ab") as output:
        worker = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=output, stderr=output)
    until(lambda: b"ready" in directory.output.read_bytes(), "the worker")
    said = dump_stacks(worker.pid, directory)
    assert worker.poll() is None  # the default action would have ended it
    assert bool(said) == (code == ANSWERS)
    stacks = [path.read_text() for path in directory.path.glob("stacks-*.txt")]
    assert len(stacks) == (1 if code == ANSWERS else 0)
    assert all("most recent call first" in text and "ready" not in text for text in stacks)
    if code == IS_DEAF:
        assert "py-spy" in describe_hang(worker.pid, directory)
    worker.communicate()


def test_a_stopped_process_is_described_and_not_disturbed() -> None:
    directory = new_run()
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.kill(worker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, worker.pid, os.WSTOPPED)
    assert "kill -CONT" in describe_hang(worker.pid, directory)
    worker.kill()
    worker.wait()
