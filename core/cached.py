"""Folders made once and kept in the cache: whole or not at all, by one process at a time."""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from llmtui.core.errors import RefusedError
from llmtui.core.files import fsync_folder
from llmtui.core.home import cache_folder
from llmtui.core.runs import locks

_POLL_SECONDS = 0.5


def cached_folder(name: str, make: Callable[[Path], None], waiting: Callable[[], None] = lambda: None) -> Path:
    """The cached folder of this name, made when it is not there: whole or not at all, by one process at a time.

    Args:
        name: holds the identity of what it was made from.
        make: fills the empty folder it is given.
        waiting: called again and again while another process makes it.
    """
    target = cache_folder() / name
    lock = None
    while not target.is_dir() and lock is None:
        try:
            lock = locks.take(cache_folder() / f".{name}.lock")
        except RefusedError:
            waiting()
            time.sleep(_POLL_SECONDS)
    try:
        if not target.is_dir():
            for left in target.parent.glob(f".{glob.escape(name)}.*.tmp"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            write_folder(target, make)
    finally:
        if lock is not None:
            lock.release()
    return target


def write_folder(target: Path, make: Callable[[Path], None]) -> None:
    """Fill a folder beside the target, fsync it, rename it into place.

    Raises:
        FileExistsError: the target is there.
    """
    staging = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700, parents=True)
    try:
        make(staging)
        fsync_tree(staging)
        if target.exists():
            raise FileExistsError(17, "the folder exists", str(target))
        staging.rename(target)
        fsync_folder(target.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def fsync_tree(folder: Path) -> None:
    """Make every file and name below a folder survive a power loss.

    Raises:
        OSError: the disk refuses; what is in the folder must be written anew, never fsynced again.
    """
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(os.path.join(root, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        fsync_folder(Path(root))
