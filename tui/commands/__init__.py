"""The commands: one small file each. Textual is imported only when a screen opens, torch never."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Entry point; the exit code. Without a command the screen opens, and no parser is imported before it."""
    try:
        if len(sys.argv) == 1 and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
            from llmtui.tui.commands.screen import open_screen

            return open_screen()
        from llmtui.tui.commands.main import main as command_line

        return command_line()
    except KeyboardInterrupt:  # while the commands were still being imported
        return 130
