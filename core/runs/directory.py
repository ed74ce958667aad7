"""One run directory: its paths, its creation, what is in `run.json`.

The run directory is the only truth about a run. The class knows where things are and nothing else.
"""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from llmtui.core.errors import DataError, MachineError, UsageError
from llmtui.core.files import write_atomically

_NAME: Final = re.compile(r"[^\w.+-]+")
_MAX_NAME: Final = 80
_RESERVED_CHARACTERS: Final = "/\\@\x00\n\r"


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: written once when the run is created."""

    id: str
    name: str
    preset: str
    created: float
    task: str = "finetune"
    description: str = ""
    parent: str = ""
    parent_step: int | None = None
    command: list[str] = []
    host: str = ""
    user: str = ""
    llmtui: str = ""


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.preset = path / "preset.yaml"
        self.info_file = path / "run.json"
        self.attempts = path / "attempts"
        self.supervisor_lock = path / "supervisor.lock"
        self.worker_lock = path / "worker.lock"
        self.user_file = path / "user.json"
        self.events = path / "events.jsonl"
        self.monitor = path / "monitor.jsonl"
        self.requests = path / "requests"
        self.output = path / "output.log"
        self.checkpoints = path / "checkpoints"
        self.adapter = path / "adapter"
        self.model = path / "model"
        self.summary_json = path / "summary.json"

    def __repr__(self) -> str:
        return f"RunDirectory({self.id!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunDirectory) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def info(self) -> RunInfo:
        """What `run.json` says; the id is the folder's, also of a copied or renamed one.

        Raises:
            DataError: it is missing or damaged.
        """
        try:
            info = msgspec.json.decode(self.info_file.read_bytes(), type=RunInfo)
            return info if info.id == self.id else msgspec.structs.replace(info, id=self.id)
        except (OSError, msgspec.DecodeError) as error:
            raise DataError("run.json is missing or damaged", place=self.id, hint=f"look into {self.path}") from error

    def preset_text(self) -> str:
        """What `preset.yaml` says.

        Raises:
            DataError: it is missing or damaged.
        """
        try:
            return self.preset.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                "preset.yaml is missing or damaged", place=self.id, hint=f"look into {self.path}"
            ) from error

    def attempt_file(self, number: int) -> Path:
        """`attempts/N.yaml`."""
        return self.attempts / f"{number}.yaml"

    def last_attempt(self) -> int:
        """The number of the newest attempt, 0 when none was started."""
        numbers = [int(p.stem) for p in self.attempts.glob("[0-9]*.yaml") if p.stem.isdecimal()]
        return max(numbers, default=0)


def clean_name(name: str) -> str:
    """A run's name as a folder name: letters, digits, `.`, `_`, `+`, `-`, of any script.

    Raises:
        UsageError: nothing usable is left, or it tries to be a path.
    """
    if any(c in name for c in _RESERVED_CHARACTERS):
        raise UsageError(
            f"a run's name cannot be {name!r}", place="--name", hint="use letters, digits, '.', '_' and '-'"
        )
    cleaned = _NAME.sub("-", name).strip("-.")
    while len(cleaned.encode()) > _MAX_NAME:
        cleaned = cleaned[:-1]
    if cleaned == "last":
        raise UsageError("last always means the newest run", place="--name", hint="choose another name")
    if not cleaned:
        raise UsageError(
            f"a run's name cannot be {name!r}", place="--name", hint="use letters, digits, '.', '_' and '-'"
        )
    return cleaned


def create_run(
    runs: Path,
    preset_text: str,
    *,
    name: str,
    preset_name: str,
    task: str,
    description: str,
    command: Sequence[str],
    parent: str = "",
    parent_step: int | None = None,
) -> RunDirectory:
    """Make a new run directory with its preset and `run.json`. The id is `YYYYMMDD-HHMMSS-<name>`, made unique.

    Raises:
        MachineError: the folder cannot be written.
    """
    from llmtui.core.version import version

    label = clean_name(name)
    try:
        path = _make_unique(runs, time.strftime("%Y%m%d-%H%M%S"), label)
        directory = RunDirectory(path)
        directory.attempts.mkdir(mode=0o700)
        directory.requests.mkdir(mode=0o700)
        directory.checkpoints.mkdir(mode=0o700)
        write_atomically(directory.preset, preset_text.encode())
        info = RunInfo(
            id=path.name, name=label, preset=preset_name, created=time.time(), task=task,
            description=description, parent=parent, parent_step=parent_step, command=list(command),
            host=os.uname().nodename, user=_user(), llmtui=version(),
        )  # fmt: skip
        write_atomically(directory.info_file, msgspec.json.format(msgspec.json.encode(info), indent=2))
    except OSError as error:
        raise MachineError(
            f"the run directory cannot be written: {error.strerror}",
            place=str(runs),
            hint="free some space, or set LLMTUI_HOME to a folder on another disk",
        ) from error
    return directory


def _user() -> str:
    """The login name that belongs to the process; its number where there is none (a container)."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _make_unique(runs: Path, stamp: str, label: str) -> Path:
    for number in range(1, 1000):
        path = runs / (f"{stamp}-{label}" if number == 1 else f"{stamp}-{label}-{number}")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(17, "too many runs of one name in one second")
