"""Requests obeyed at the end of a step: stop with a checkpoint, stop now, checkpoint and go on."""

from __future__ import annotations

from typing import Any

from llmtui.core.runs.requests import Request
from llmtui.core.worker.session import Session


class Obedience:
    """What was asked for and is still to be answered. `stopped` says why training stops; empty while it goes on."""

    def __init__(self, session: Session, trainer: Any) -> None:
        self._session = session
        self._trainer = trainer
        self._waiting: list[Request] = []
        self.stopped = ""

    def obey(self, control: Any) -> bool:
        """Turn new requests into the Trainer's own control flags; whether a checkpoint was asked for."""
        step, asked = self._trainer.state.global_step, False
        for request in self._session.pending():
            if any(request.id == known.id for known in self._waiting):
                continue
            if request.request == "stop_now":
                control.should_training_stop, control.should_save = True, False
                self._stop(f"stopped at step {step}, without a checkpoint")
                self._session.answer(request, True, f"stopped at step {step}, without a checkpoint")
                continue
            self._waiting.append(request)
            control.should_save = asked = True
            if request.request == "stop":
                control.should_training_stop = True
                self._stop(f"stopped at step {step}, with a checkpoint")
        return asked

    def _stop(self, cause: str) -> None:
        if self._trainer.state.global_step < self._trainer.state.max_steps:  # else it is finished anyway
            self.stopped = cause

    def saved(self, text: str) -> None:
        """A checkpoint is on disk: whoever waited for one is answered."""
        for request in self._waiting:
            self._session.answer(request, True, text)
        self._waiting.clear()

    def not_saved(self, text: str) -> None:
        """No checkpoint could be written. A stop is refused then, so that no work is lost; `stop_now` still works."""
        for request in self._waiting:
            self._session.answer(request, False, text)
            if request.request == "stop":
                self.stopped = ""
                self._trainer.control.should_training_stop = False
        self._waiting.clear()
