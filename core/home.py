"""Where things are kept: `$LLMTUI_HOME`, else the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

from llmtui.core.errors import MachineError


def home() -> Path:
    """The home folder, created with mode 0700.

    Raises:
        MachineError: it cannot be created or written.
    """
    return _made(home_path(), "the home folder cannot be created")


def home_path() -> Path:
    """The home folder's path, whether or not it exists yet."""
    named = os.environ.get("LLMTUI_HOME")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_data_path("llmtui")


def runs_folder() -> Path:
    """`<home>/runs`: one folder per run."""
    return _folder("runs")


def user_presets_folder() -> Path:
    """`<home>/presets`: the user's own presets."""
    return _folder("presets")


def cache_folder() -> Path:
    """`<home>/cache`: converted models, tokens; may be deleted at any time."""
    return _folder("cache")


def trash_folder() -> Path:
    """`<home>/trash`: what `rm` removed, until it is deleted."""
    return _folder("trash")


def _folder(name: str) -> Path:
    return _made(home() / name, "the folder cannot be created")


def _made(path: Path, otherwise: str) -> Path:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        cure = "set LLMTUI_HOME to a folder on a local disk that you may write"
        raise MachineError(f"{otherwise}: {error.strerror}", place=str(path), hint=cure) from error
    return path
