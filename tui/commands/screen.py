"""`llmtui` alone: the screen, by the shortest way."""

from __future__ import annotations

from llmtui.core.errors import LlmtuiError


def open_screen() -> int:
    """Open the screen on the home folder; the exit code."""
    from llmtui.core.home import home
    from llmtui.tui.app import run_app

    try:
        return run_app(home())
    except LlmtuiError as error:
        from llmtui.tui.commands.output import say_error

        say_error(error, False)
        return error.exit_code
    except OSError as error:
        from llmtui.tui.commands.output import say_system_error

        return say_system_error(error, False)
