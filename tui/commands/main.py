"""`llmtui`: parses the command line, runs the command, turns errors into sentences and exit codes."""

from __future__ import annotations

import sys

import typer

from llmtui.core.errors import LlmtuiError
from llmtui.tui.commands import (
    attach,
    checkpoint,
    data,
    evaluate,
    export,
    fetch,
    forecast,
    gpus,
    logs,
    ls,
    merge,
    presets,
    resume,
    rm,
    run,
    show,
    status,
    stop,
    wait,
)
from llmtui.tui.commands.output import say, say_error, say_system_error

app = typer.Typer(
    name="llmtui",
    help="Fine-tune language models on your own Linux GPU box, from the terminal. Without a command: the screen.",
    add_completion=False, no_args_is_help=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    epilog="Exit codes: 0 finished, 1 the run failed, 2 usage, preset or data, 3 machine, 4 stopped (resumable), "
           "5 refused, 130 detached.",
)  # fmt: skip


def _version(value: bool) -> None:
    if value:
        from llmtui.core.version import version

        say(f"llmtui {version()}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    from llmtui.core.home import home, runs_folder
    from llmtui.core.process.adopting import adopt_orphans

    if context.invoked_subcommand != "presets":
        adopt_orphans(runs_folder())
    if context.invoked_subcommand is None:
        if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
            ls.ls(as_json=False)
            return
        from llmtui.tui.app import run_app

        raise typer.Exit(run_app(home()))


for module in (
    run, ls, show, status, attach, logs, stop, checkpoint, resume, rm, export, evaluate, fetch, data, forecast, merge,
    gpus, wait,
):  # fmt: skip
    module.add(app)
presets.add(app)


def main() -> int:
    """Entry point; the exit code."""
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
        return code if isinstance(code, int) else 0
    except LlmtuiError as error:
        say_error(error, as_json)
        return error.exit_code
    except typer.Abort:
        say("stopped", error=True)
        return 130
    except KeyboardInterrupt:
        return 130
    except typer.Exit as leave:
        return leave.exit_code
    except OSError as error:
        return say_system_error(error, as_json)
    except Exception as error:
        return _usage_error(error, as_json)


def _usage_error(error: Exception, as_json: bool) -> int:
    """What the parser refuses, as our own error; anything else is a fault of ours and keeps its traceback."""
    message = getattr(error, "format_message", None)
    if message is None:
        raise error
    from llmtui.core.errors import UsageError

    say_error(UsageError(message(), hint="llmtui --help, or llmtui COMMAND --help"), as_json)
    return UsageError.exit_code
