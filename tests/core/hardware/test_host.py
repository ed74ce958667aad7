"""The host, and a process known by more than its pid."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from llmtui.core.hardware.host import ProcessTree, disk_free, sample_host
from llmtui.core.home import home


def test_the_host_is_read() -> None:
    host = sample_host(home())
    assert 0 < host.ram_used < host.ram_total
    assert host.disk_free
    assert disk_free(home()) is not None
    assert disk_free(Path("/no/such/folder")) is None
    assert sample_host(Path("/no/such/folder")).disk_free is None


def test_a_process_has_usage_and_children() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        tree = ProcessTree(os.getpid())
        assert tree.alive
        assert {os.getpid(), child.pid} <= set(tree.pids())
        cpu, rss = tree.usage()
        assert cpu is not None
        assert rss is not None
        assert rss > 10 << 20
    finally:
        child.communicate()
    assert child.pid not in tree.pids()


def test_a_zombie_and_a_stranger_are_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    tree = ProcessTree(child.pid)
    psutil.wait_procs([psutil.Process(child.pid)], timeout=0.0)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, not reaped
    assert not tree.alive
    assert tree.pids() == []
    assert tree.usage() == (None, None)
    child.wait()
    assert not ProcessTree(child.pid).alive
