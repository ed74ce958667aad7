"""The project's errors, by what the user must do about them.

Every error carries its message, the place (file, line, row, field) and a cure.
Exit codes follow the command contract: 1 the run failed, 2 usage, preset or data,
3 machine or access, 4 stopped or interrupted, 5 refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from llmtui.core.text import safe_text


class LlmtuiError(Exception):
    """One clear sentence with its place and its cure.

    Args:
        message: what happened.
        place: where: a file and line, a row, a field, a run; empty when it says itself.
        hint: what to do.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return safe_text(f"{text} — {self.hint}" if self.hint else text, newlines=True)

    def as_dict(self) -> dict[str, Any]:
        """The value of the `error` key that commands print with `--json`."""
        return {"kind": self.kind, "message": self.message, "place": self.place, "hint": self.hint}


class UsageError(LlmtuiError):
    """The command was called wrongly."""

    kind = "usage"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a preset: where it stands, what was found, how to mend it."""

    file: str
    line: int | None
    field: str
    value: str
    problem: str
    cure: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        name = f"{self.field}: " if self.field else ""
        return safe_text(
            f"{where}: {name}{self.problem} — {self.cure}" if self.cure else f"{where}: {name}{self.problem}"
        )


class PresetError(LlmtuiError):
    """Everything that is wrong with a preset, at once."""

    kind = "preset"
    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {"problems": [asdict(p) for p in self.problems]}


class DataError(LlmtuiError):
    """The data cannot be trained on as it is."""

    kind = "data"
    exit_code = 2


class MachineError(LlmtuiError):
    """The machine lacks something: a GPU, memory, disk, a driver, a package, access."""

    kind = "machine"
    exit_code = 3


class RefusedError(LlmtuiError):
    """Busy, ambiguous, or not possible in this state; nothing was changed."""

    kind = "refused"
    exit_code = 5


class RunFailedError(LlmtuiError):
    """A run's worker failed for a reason of its own."""

    kind = "run"
    exit_code = 1
