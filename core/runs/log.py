"""Append-only event files: whole lines in one write, read from a byte offset.

The writer heals a torn last line before its first append; a reader treats one as not yet written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from llmtui.core.runs import events
from llmtui.core.runs.clock import boot_seconds

_CHUNK_BYTES: Final = 1 << 20


class EventWriter:
    """Appends events to one file; the only writer of that file.

    Raises:
        OSError: the disk is full or gone; nothing half-written stays (a torn tail is healed first).
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._number = self._heal()
        self._torn = False

    def _heal(self) -> int:
        """Cut a torn or NUL-filled tail off, and return the number of the next line."""
        size = os.fstat(self._descriptor).st_size
        end, last = _last_whole_line(self._descriptor, size)
        if end < size:
            os.ftruncate(self._descriptor, end)
        event = events.decode(last) if last else None
        return event.n + 1 if event else _count_lines(self._descriptor, end)

    def write(self, event: events.EventBase) -> None:
        """Append one event; its number and times are set here."""
        if self._torn:
            self._number = self._heal()
            self._torn = False
        stamped = msgspec.structs.replace(event, n=self._number, t=time.time(), m=boot_seconds())
        line = events.encode(stamped)
        self._torn = True
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError(28, "no space left for the event", "events.jsonl")
        self._torn = False
        self._number += 1

    def fsync(self) -> None:
        """Make everything written so far survive a power loss. Called at checkpoints and state changes."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Fsync and close; safe to call twice."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventReader:
    """Reads what is new in an event file since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.damaged_lines = 0
        self._inode = 0

    def read_new(self, limit_bytes: int | None = None) -> Iterator[events.EventBase]:
        """Yield new events in order. A torn last line stays for the next call.

        Args:
            limit_bytes: stop after about this much, so that a screen stays quick on a long run.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            self._begin(descriptor)
            budget = limit_bytes if limit_bytes is not None else 1 << 62
            while budget > 0:
                chunk = os.pread(descriptor, _CHUNK_BYTES, self.offset)
                end = chunk.rfind(b"\n") + 1
                if end == 0 and len(chunk) == _CHUNK_BYTES:  # one line longer than a chunk
                    chunk, end = self._long_line(descriptor)
                if end == 0:
                    return
                self.offset += end
                budget -= end
                yield from self._decode(chunk[:end])
        finally:
            os.close(descriptor)

    def _begin(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if status.st_ino != self._inode or status.st_size < self.offset:
            # Another file under this name (a restored run), or a healed tail: read from the start.
            if self._inode and status.st_ino != self._inode:
                self.offset = 0
            self._inode = status.st_ino
            self.offset = min(self.offset, status.st_size)

    def _long_line(self, descriptor: int) -> tuple[bytes, int]:
        rest = os.pread(descriptor, os.fstat(descriptor).st_size - self.offset, self.offset)
        return rest, rest.rfind(b"\n") + 1

    def _decode(self, block: bytes) -> Iterator[events.EventBase]:
        for line in block.splitlines() if b"\r" not in block else block.split(b"\n"):
            if not line:
                continue
            event = events.decode(line)
            if event is None:
                if not _is_unknown_type(line):
                    self.damaged_lines += 1
                continue
            yield event


def _is_unknown_type(line: bytes) -> bool:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _last_whole_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """The end offset of the last whole line, and that line. Zero-filled tails (power loss) are not whole."""
    position, tail = size, b""
    while position > 0:
        start = max(0, position - 65536)
        tail = os.pread(descriptor, position - start, start) + tail
        position = start
        end = tail.rfind(b"\n")
        while end >= 0:
            begin = tail.rfind(b"\n", 0, end)
            if begin < 0 and position > 0:
                break  # the line begins in an earlier block
            line = tail[begin + 1 : end]
            if line and b"\x00" not in line:
                return position + end + 1, line
            tail, end = tail[: begin + 1], begin
    return 0, b""


def _count_lines(descriptor: int, size: int) -> int:
    count, offset = 0, 0
    while offset < size:
        block = os.pread(descriptor, min(_CHUNK_BYTES, size - offset), offset)
        count += block.count(b"\n")
        offset += len(block)
    return count
