"""Whether a run learns anything, judged from its losses as they become known."""

from __future__ import annotations

from typing import Final

from llmtui.core.errors import DataError, LlmtuiError
from llmtui.core.worker.failures import NanLossError
from llmtui.core.worker.steps import StepLog

_ZERO_STEPS: Final = 3  # a loss of exactly 0 over this many first steps means that nothing is learned
_BAD_STEPS: Final = 10  # a loss that is not finite over this many first steps will never be


def judge_losses(steps: StepLog, *, learned_before: bool, ended: bool, go_on: bool) -> None:
    """Refuse to go on when nothing is learned.

    Args:
        learned_before: an earlier attempt had losses to learn from; a later loss of 0 is a good one.
        ended: no step is to come, so fewer of them say enough.
        go_on: whether the preset wants to go on over losses that are not finite.

    Raises:
        NanLossError: a loss is not finite; with `go_on`, when none has been.
        DataError: the loss is exactly 0 from the start.
    """
    if steps.first_bad is not None and not go_on:
        raise _not_finite(*steps.first_bad)
    seen, ended = steps.seen_steps, ended and not steps.waiting
    if learned_before or not seen:
        return
    if steps.bad_steps == seen and (seen >= _BAD_STEPS or ended):
        raise NanLossError("the loss is not a finite number in any step so far: nothing is learned", place="training",
                           hint="look at the base's weights, at model.dtype and at training.learning_rate")  # fmt: skip
    if steps.zero_steps == seen and (seen >= _ZERO_STEPS or ended):
        raise _zero(steps.trained_tokens)


def _not_finite(step: int, bad: str) -> LlmtuiError:
    if step == 1:  # no weight has been changed yet, so the learning rate has nothing to do with it
        return NanLossError(f"the loss is {bad} from the first step: nothing can be learned", place="training",
                            hint="the base's weights are broken or too large for model.dtype: try float32")  # fmt: skip
    hint = "lower training.learning_rate, look at the data, or set training.on_nan: continue"
    return NanLossError(f"the loss is {bad} at step {step}", place="training", hint=hint)


def _zero(trained_tokens: int) -> LlmtuiError:
    hint = "the base gives these answers already, for sure: look at the rows and at dataset.train_on"
    if not trained_tokens:
        hint = "no token of these rows is trained: look at the answers and raise dataset.max_length"
    return DataError("the loss is exactly 0 from the first step: nothing is learned", place="dataset", hint=hint)
