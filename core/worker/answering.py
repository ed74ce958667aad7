"""How a child of the worker room answers the command that started it (`core.process.child` listens)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from llmtui.core.errors import LlmtuiError

Say = Callable[..., None]
"""Progress: what is done, how far, out of how many."""


def answer(work: Callable[[Say], dict[str, Any]]) -> int:
    """Lines of JSON: `{"progress": [what, done, total]}`, and last the answer or `{"error": …}`; the exit code."""
    last: list[Any] = []

    def say(what: str, done: int, total: int | None, _: str = "") -> None:
        if last != [what, done]:
            last[:] = [what, done]
            print(json.dumps({"progress": [what.replace("_", " "), done, total]}), flush=True)  # noqa: T201

    try:
        made = work(say)
    except BrokenPipeError:  # the command was killed
        return 1
    except LlmtuiError as error:
        return _fail(error)
    except Exception as error:
        import traceback

        from llmtui.core.worker.failures import as_llmtui_error

        traceback.print_exc()
        return _fail(as_llmtui_error(error))
    print(json.dumps(made))  # noqa: T201
    return 0


def _fail(error: LlmtuiError) -> int:
    print(json.dumps({"error": error.as_dict(), "exit_code": error.exit_code}))  # noqa: T201
    return error.exit_code
