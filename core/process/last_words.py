"""What the end of `output.log` tells of a death: the last error, its place, and known troubles by their words."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from llmtui.core.text import safe_text

_TAIL_BYTES: Final = 64 << 10
_LONGEST: Final = 300
_FRAME: Final = re.compile(r'^\s*File "([^"]+)", line (\d+)')
_EXCEPTION: Final = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning|Fault)\b.*")
_FATAL: Final = re.compile(r"^Fatal Python error: (.*)")


@dataclass(frozen=True, slots=True)
class LastWords:
    """The last line that is not empty; the last error if there is a traceback, and the file and line it came from."""

    line: str = ""
    error: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A known trouble. `again` says whether starting again may help."""

    kind: str
    text: str
    hint: str
    again: bool = False


_TROUBLES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), trouble)
    for pattern, trouble in (
        (r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]",
         Trouble("disk_full", "the disk is full", "free space, then llmtui resume")),
        (r"NCCL (error|timeout)|ncclUnhandled|ncclSystemError|ncclRemoteError|ProcessGroupNCCL.*(timeout|timed out)",
         Trouble("nccl", "the GPUs' communication failed (NCCL)",
                 "llmtui logs shows which rank; NCCL_DEBUG=INFO says more", again=True)),
        (r"GPU is lost|fallen off the bus|CUDA.*driver shutting down|no CUDA-capable device|driver/library version "
         r"mismatch|forward compatibility was attempted|CUDA driver version is insufficient",
         Trouble("driver", "the NVIDIA driver or a card went away",
                 "look for Xid in dmesg; reboot if nvidia-smi fails too")),
        (r"CUDA out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED",
         Trouble("gpu_memory", "the GPU's memory ran out",
                 "use a smaller batch, gradient_checkpointing: true, or a quantised base")),
        (r"CUDA error|CUDNN_STATUS|CUBLAS_STATUS|uncorrectable ECC",
         Trouble("cuda", "the GPU reported an error (CUDA)", "if it comes back, look for Xid in dmesg", again=True)),
        (r"\bMemoryError\b|Cannot allocate memory|DefaultCPUAllocator.*can't allocate",
         Trouble("host_memory", "the machine's memory ran out",
                 "close other programs, or use a smaller model or batch")),
        (r"\[Errno (5|103|107|110|116)\]|Transport endpoint is not connected|Stale file handle|Input/output error|"
         r"ConnectionError|ConnectTimeout|ReadTimeout|Connection reset by peer",
         Trouble("io", "a disk, mount or connection failed", "check what the message names, then llmtui resume",
                 again=True)),
    )
)  # fmt: skip


def read_last_words(path: Path) -> LastWords:
    """Read the end of an output file."""
    lines = _tail(path)
    last = next((line for line in reversed(lines) if line.strip()), "")
    fatal = next((i for i in reversed(range(len(lines))) if _FATAL.match(lines[i])), None)
    if fatal is not None:
        return LastWords(_clean(last), _clean(lines[fatal]), _place(lines[fatal:], first=True))
    error = next((i for i in reversed(range(len(lines))) if _EXCEPTION.match(lines[i])), None)
    if error is None:
        return LastWords(_clean(last))
    return LastWords(_clean(last), _clean(lines[error]), _place(lines[:error], first=False))


def known_trouble(text: str) -> Trouble | None:
    """The trouble that a message or a log's end speaks of."""
    return next((trouble for pattern, trouble in _TROUBLES if pattern.search(text)), None)


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace").replace("\r", "\n").splitlines()
    except OSError:
        return []


def _place(lines: list[str], *, first: bool) -> str:
    """File and line of a frame: faulthandler names the innermost first, a traceback last."""
    frames = [match for line in lines if (match := _FRAME.match(line))]
    if not frames:
        return ""
    frame = frames[0] if first else frames[-1]
    return safe_text(f"{Path(frame[1]).name}, line {frame[2]}")


def _clean(line: str) -> str:
    return safe_text(line.strip())[:_LONGEST]
