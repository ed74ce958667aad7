"""The commands: one small file each. Textual is imported only when a screen opens, torch never."""

from __future__ import annotations

from llmtui.tui.commands.main import main

__all__ = ["main"]
