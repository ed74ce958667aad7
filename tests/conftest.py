"""Every test has a home of its own, and leaves no process of a run behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # two tests at a time on two cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore both, and all they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def llmtui_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh `LLMTUI_HOME`; processes that still work in it after the test are ended and fail the test."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LLMTUI_HOME", str(home))
    yield home
    _, left = psutil.wait_procs(list(_processes_naming(str(home))), timeout=5)  # what is ending may end
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=5)
    assert not left, f"processes left behind: {[p.pid for p in left]}"


def _processes_naming(text: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.pid == os.getpid() or process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        if any(text in argument for argument in process.info["cmdline"] or ()):
            yield process
