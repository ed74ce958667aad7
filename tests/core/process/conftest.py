"""Runs of these tests claim cards among themselves only, leave no process behind, and write no pictures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmtui.core.home import runs_folder
from llmtui.core.process import cards
from llmtui.core.runs.directory import RunDirectory
from tests.core.process.runs import processes_of


@pytest.fixture(autouse=True)
def own_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A claims folder of this test's own, here and in the supervisors it starts."""
    monkeypatch.setattr(cards, "CLAIMS", tmp_path / "claims")
    monkeypatch.setenv("LLMTUI_CLAIMS", str(tmp_path / "claims"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path / "claims"


@pytest.fixture(autouse=True)
def nothing_left(llmtui_home: Path) -> Iterator[None]:
    """No process that names a run of this test lives after it."""
    yield
    end = time.monotonic() + 5  # an interpreter takes a moment to leave
    while left := [p for path in runs_folder().iterdir() for p in processes_of(RunDirectory(path))]:
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    for process in left:
        process.kill()
    assert not left, f"left behind: {left}"
