"""The attempt's own record of how training goes: the best evaluation, patience. Kept inside each checkpoint."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llmtui.core.runs.checkpoints import PROGRESS


class Progress(msgspec.Struct, kw_only=True):
    """`best_value` in the metric's own unit; `waited` evaluations since it got better; `evaluated`: the last's step;
    `learned`: whether any loss so far was a number other than 0 (None: not noted)."""

    best_step: int | None = None
    best_value: float | None = None
    waited: int = 0
    evaluated: int | None = None
    micro_batch: int | None = None
    data_hash: str = ""
    learned: bool | None = None

    def note(self, step: int, value: float | None, larger_is_better: bool) -> bool:
        """Whether this evaluation is the best so far; one that is not a number never is."""
        self.evaluated = step
        better = value is not None and (
            self.best_value is None or (value > self.best_value if larger_is_better else value < self.best_value)
        )
        if better:
            self.best_step, self.best_value, self.waited = step, value, 0
        else:
            self.waited += 1
        return better

    def save(self, folder: Path) -> None:
        """Write into a staged checkpoint."""
        (folder / PROGRESS).write_bytes(msgspec.json.encode(self))


def load_progress(folder: Path | None) -> Progress:
    """The record of a checkpoint; a fresh one when there is none."""
    if folder is None:
        return Progress()
    try:
        return msgspec.json.decode((folder / PROGRESS).read_bytes(), type=Progress)
    except (OSError, msgspec.DecodeError):
        return Progress()
