"""Alive is a lock, not a pid: open-file-description locks on `supervisor.lock` and `worker.lock`.

A lock dies with the last descriptor of its open file, so a killed process frees it and no stale pid
can lie. Looking asks the kernel (F_OFD_GETLK) and never takes the lock, so that a look cannot refuse
a rightful starter.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path
from typing import Final, Literal, Self

from llmtui.core.errors import RefusedError

# Linux's numbers; Python's fcntl has them from 3.9 on, as the platform defines.
_GETLK: Final = fcntl.F_OFD_GETLK
_SETLK: Final = fcntl.F_OFD_SETLK
# struct flock on 64-bit Linux: short l_type, short l_whence, off_t l_start, off_t l_len, pid_t l_pid
_FLOCK: Final = "hhqqi"

Mode = Literal["exclusive", "shared"]


def _request(kind: int) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)


class Lock:
    """A held lock; released by `release`, by the end of a `with`, or by the process's death."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def fileno(self) -> int:
        """The descriptor that holds the lock."""
        return self._descriptor

    def release(self) -> None:
        """Give the lock back; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take(path: Path, mode: Mode = "exclusive") -> Lock:
    """Take the lock at once or not at all. The descriptor is not inherited by children.

    Raises:
        RefusedError: somebody else holds it.
    """
    descriptor = _open(path)
    kind = fcntl.F_WRLCK if mode == "exclusive" else fcntl.F_RDLCK
    try:
        fcntl.fcntl(descriptor, _SETLK, _request(kind))
    except (BlockingIOError, PermissionError) as error:
        os.close(descriptor)
        raise RefusedError(
            f"another process holds {path.name}", place=str(path.parent.name), hint="wait until it has ended"
        ) from error
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(path, descriptor)


def _open(path: Path) -> int:
    """Open the file, made only if it is missing: with O_CREAT the kernel refuses another user's file in a folder such
    as /tmp (fs.protected_regular), even one that everybody may write."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def is_held(path: Path) -> bool:
    """Whether anybody holds the lock, shared or exclusive. Takes nothing; what is no file is held by nobody."""
    try:
        # Reading is enough to ask, and all there is on a disk that the kernel has made read-only.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        answer = fcntl.fcntl(descriptor, _GETLK, _request(fcntl.F_WRLCK))
    finally:
        os.close(descriptor)
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK
