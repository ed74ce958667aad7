"""The package's version."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The installed version, or `unknown` in a bare source tree."""
    try:
        return metadata.version("llmtui")
    except metadata.PackageNotFoundError:
        return "unknown"
