"""A child that answers: it prints lines of JSON, progress first and at last an answer or an error."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from llmtui.core.errors import DataError, LlmtuiError, MachineError, RefusedError, RunFailedError, UsageError

Progress = Callable[[str, int, int | None], None]
"""What is done, how far, out of how many."""
_KINDS: Final[dict[str, type[LlmtuiError]]] = {
    kind.kind: kind for kind in (UsageError, DataError, MachineError, RefusedError)
}
_UTF8: Final = {"PYTHONIOENCODING": "utf-8"}  # whatever the locale: what is spoken here is UTF-8
_BY_CODE: Final[dict[int, type[LlmtuiError]]] = {2: DataError, 3: MachineError, 5: RefusedError}


def ask_child(
    command: Sequence[str], on_progress: Progress, *, what: str, place: str = "", text: str = "",
    environment: Mapping[str, str] | None = None, begun: Callable[[subprocess.Popen[str]], None] = lambda _: None,
) -> dict[str, Any]:  # fmt: skip
    """Run a child to its end; its answer. It is killed when this is left by an exception.

    Args:
        what: what it does, for the sentence when it dies: "evaluating".
        text: its standard input.
        environment: added to ours.
        begun: given the child, for those who may want to kill it.

    Raises:
        LlmtuiError: what the child says is wrong, or that it died.
    """
    with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile() as given:
        given.write(text.encode())
        given.seek(0)
        child = subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=complaints, text=True, encoding="utf-8",
            errors="replace", env={**os.environ, **_UTF8, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        begun(child)
        try:
            answer = _listen(child, on_progress)
            code = child.wait()
        finally:
            child.kill()  # a child that has ended takes no harm
            child.wait()
        complaints.seek(0)
        last = complaints.read().decode("utf-8", "replace").strip().splitlines()
    if answer is None:
        raise RunFailedError(f"{what} failed: {last[-1] if last else f'exit code {code}'}", place=place,
                             hint="try it on a machine with more memory")  # fmt: skip
    if "error" in answer:
        wrong = answer["error"]
        kind = _KINDS.get(wrong["kind"]) or _BY_CODE.get(answer["exit_code"], RunFailedError)
        raise kind(wrong["message"], place=wrong["place"], hint=wrong["hint"])
    return answer


def _listen(child: subprocess.Popen[str], on_progress: Progress) -> dict[str, Any] | None:
    """The last line that is an answer; libraries may print around it."""
    answer = None
    for line in child.stdout or ():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "progress" in value:
            on_progress(*value["progress"])
        elif isinstance(value, dict):
            answer = value
    return answer
