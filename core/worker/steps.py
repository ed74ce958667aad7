"""Step events without stopping the device: numbers are copied asynchronously and read when they have arrived."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from llmtui.core.runs import events as ev
from llmtui.core.worker.saying import say

_MOST_PENDING: Final = 20
_MOST_SECONDS: Final = 1.0


@dataclass
class _Pending:
    step: int
    epoch: float
    learning_rate: float
    tokens: int
    trained_tokens: int
    seconds: float
    numbers: torch.Tensor  # loss, grad norm (NaN = none) on the CPU, perhaps still being copied
    arrived: Any  # torch.cuda.Event or None
    born: float


class StepLog:
    """Collects what a step's event needs and writes it once known, in order.

    `seconds` of a step is the time since the last step's end with pauses (eval, save, samples) left out.

    Args:
        logging_steps: every so many steps a line goes to output.log too.
    """

    def __init__(self, write: Callable[[ev.Step], None], device: torch.device, logging_steps: int) -> None:
        self._write = write
        self._logging_steps = logging_steps
        self._cuda = device.type == "cuda"
        self._device = device
        self._waiting: deque[_Pending] = deque()
        self._mark = time.perf_counter()
        self._group: list[torch.Tensor] = []
        self._norm: torch.Tensor | None = None
        self._rate = 0.0
        self.first_bad: tuple[int, str] | None = None
        self.bad_steps = 0
        self.zero_steps = 0
        self.seen_steps = 0
        self.trained_tokens = 0

    @property
    def learned(self) -> bool:
        """Whether any step had something to learn from: a finite loss other than 0."""
        return self.seen_steps > self.zero_steps + self.bad_steps

    @property
    def waiting(self) -> bool:
        """Whether the numbers of some steps have not arrived."""
        return bool(self._waiting)

    # --- while a step runs -----------------------------------------------------------------------

    def begin_training(self) -> None:
        """The clock of the first step starts."""
        self._mark = time.perf_counter()

    def add_loss(self, loss: torch.Tensor) -> None:
        """A micro-step's share of the loss, on the device."""
        self._group.append(loss.detach())

    def restart_group(self) -> None:
        """The accumulation group is run again."""
        self._group.clear()

    def note_norm(self, norm: Any) -> None:
        """The gradient's norm before clipping."""
        self._norm = norm if isinstance(norm, torch.Tensor) else None

    def note_rate(self, rate: float) -> None:
        """The learning rate this step is taken with."""
        self._rate = rate

    def end_step(self, step: int, epoch: float, tokens: int, trained_tokens: int) -> None:
        """A step has been issued: queue its event."""
        now = time.perf_counter()
        loss = torch.stack([part.float().reshape(()) for part in self._group]).sum() if self._group else None
        self._group = []
        parts = [
            loss if loss is not None else torch.full((), math.nan, device=self._device),
            self._norm.detach().float().reshape(())
            if self._norm is not None
            else torch.full((), math.nan, device=self._device),
        ]
        self._norm = None
        numbers, arrived = self._fetch(torch.stack([part.to(self._device) for part in parts]))
        self._waiting.append(
            _Pending(step, epoch, self._rate, tokens, trained_tokens, now - self._mark, numbers, arrived, now)
        )
        self._mark = now
        self.flush()

    def _fetch(self, numbers: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if not self._cuda:
            return numbers, None
        host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        host.copy_(numbers, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return host, arrived

    # --- around pauses ---------------------------------------------------------------------------

    def pause(self) -> None:
        """An eval, save or sample begins: what the device still works on belongs to the last step."""
        if self._cuda:
            torch.cuda.synchronize()
            if self._waiting:
                self._waiting[-1].seconds += time.perf_counter() - self._mark
        self.flush(everything=True)

    def go_on(self) -> None:
        """The pause is over."""
        self._mark = time.perf_counter()

    # --- out -------------------------------------------------------------------------------------

    def flush(self, everything: bool = False) -> None:
        """Write the events whose numbers have arrived; wait for a number only when it is late."""
        while self._waiting:
            oldest = self._waiting[0]
            late = len(self._waiting) > _MOST_PENDING or time.perf_counter() - oldest.born > _MOST_SECONDS
            if oldest.arrived is not None and not oldest.arrived.query():
                if not (everything or late):
                    return
                oldest.arrived.synchronize()
            self._waiting.popleft()
            self._emit(oldest)

    def _emit(self, item: _Pending) -> None:
        loss, norm = item.numbers.tolist()
        bad = "" if math.isfinite(loss) else ("nan" if math.isnan(loss) else "inf")
        self.seen_steps += 1
        self.bad_steps += bool(bad)
        self.zero_steps += loss == 0.0
        self.trained_tokens += item.trained_tokens
        if bad and self.first_bad is None:
            self.first_bad = (item.step, bad)
        self._write(
            ev.Step(
                step=item.step, epoch=item.epoch, loss=None if bad else loss, learning_rate=item.learning_rate,
                grad_norm=norm if math.isfinite(norm) else None, tokens=item.tokens,
                trained_tokens=item.trained_tokens, seconds=item.seconds, bad=bad,
            )
        )  # fmt: skip
        if item.step % self._logging_steps == 0:
            line = f"step {item.step} · epoch {item.epoch:.2f} · loss {bad or f'{loss:.4f}'}"
            say(f"{line} · learning rate {item.learning_rate:.3g} · {item.seconds:.3f} s")
