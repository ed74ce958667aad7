"""Alive is a lock: it dies with its holder, and looking never takes it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmtui.core.errors import RefusedError
from llmtui.core.runs import locks

_HOLD = (
    "import sys; from pathlib import Path; from llmtui.core.runs import locks\n"
    "lock = locks.take(Path(sys.argv[1]), sys.argv[2]); print('held', flush=True); sys.stdin.read()\n"
)


def holder(path: Path, mode: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_what_is_no_file_is_held_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a link").symlink_to(tmp_path / "nowhere")
    for path in ("nothing", "a file/lock", "a folder", "a link"):
        assert not locks.is_held(tmp_path / path)


def test_a_lock_that_may_only_be_read_can_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lock"
    real = os.open

    def read_only(name: Path, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system", str(name))
        return real(name, flags, *rest)

    with locks.take(path):
        monkeypatch.setattr(os, "open", read_only)
        assert locks.is_held(path)
    assert not locks.is_held(path)


def test_a_lock_dies_with_a_killed_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path, "exclusive")
    assert locks.is_held(path)
    with pytest.raises(RefusedError):
        locks.take(path)
    process.kill()
    process.wait()
    assert not locks.is_held(path)
    locks.take(path).release()


def test_ranks_share_the_worker_lock_and_a_new_attempt_needs_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = holder(path, "shared"), holder(path, "shared")
    first.kill()
    first.wait()
    assert locks.is_held(path)
    with pytest.raises(RefusedError):
        locks.take(path)
    second.kill()
    second.wait()
    locks.take(path).release()


def test_looking_takes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    for _ in range(100):
        assert not locks.is_held(path)
    with locks.take(path):
        assert locks.is_held(path)
    assert not locks.is_held(path)


def test_a_missing_lock_file_is_free(tmp_path: Path) -> None:
    assert not locks.is_held(tmp_path / "none")


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = locks.take(tmp_path / "lock")
    child = subprocess.Popen(["sleep", "30"], close_fds=False)
    lock.release()
    held = locks.is_held(tmp_path / "lock")
    child.kill()
    child.wait()
    assert not held
