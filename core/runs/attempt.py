"""`attempts/N.yaml`: how one attempt was started, and on what; written by the supervisor, read by the worker."""

from __future__ import annotations

from typing import Any

import msgspec

from llmtui.core.errors import DataError
from llmtui.core.files import write_atomically
from llmtui.core.runs.directory import RunDirectory


class AttemptGpu(msgspec.Struct, frozen=True, kw_only=True):
    """A card given to the attempt, in the order of the worker's `cuda:N`."""

    index: int
    uuid: str
    name: str


class AttemptInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker of one attempt is told, and what it ran with."""

    attempt: int
    started: float
    checkpoint: str | None = None
    """What to continue from: relative to the run directory, absolute for a fork's parent; None = the beginning."""
    from_step: int | None = None
    weights_only: bool = False
    """A fork that takes only the weights of the checkpoint: a new optimizer, schedule and step count."""
    gpus: list[AttemptGpu] = []
    processes: int = 1
    driver: str | None = None
    versions: dict[str, str] = {}
    git: dict[str, Any] = {}
    python: str = ""
    hostname: str = ""
    per_device_train_batch_size: int | None = None
    """Set after an out-of-memory death: begin with this micro-batch, same effective batch."""


def write_attempt(directory: RunDirectory, attempt: AttemptInfo) -> None:
    """Write `attempts/N.yaml` whole."""
    directory.attempts.mkdir(mode=0o700, exist_ok=True)
    write_atomically(directory.attempt_file(attempt.attempt), _to_yaml(msgspec.to_builtins(attempt)))


def read_attempt(directory: RunDirectory, number: int) -> AttemptInfo:
    """Read `attempts/N.yaml`.

    Raises:
        DataError: missing or damaged.
    """
    path = directory.attempt_file(number)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return msgspec.convert(YAML(typ="safe", pure=True).load(path.read_text("utf-8")), AttemptInfo)
    except (OSError, UnicodeDecodeError, YAMLError, msgspec.ValidationError) as error:
        raise DataError(f"attempts/{number}.yaml is missing or damaged", place=directory.id) from error


def _to_yaml(value: Any) -> bytes:
    from io import BytesIO

    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    stream = BytesIO()
    yaml.dump(value, stream)
    return stream.getvalue()
