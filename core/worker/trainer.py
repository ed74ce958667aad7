"""transformers' Trainer, subclassed where a run needs it: staged checkpoints, split steps, our own evaluation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import Trainer, TrainerCallback

from llmtui.core.worker.failures import GpuMemoryError, is_out_of_memory, memory_sentence
from llmtui.core.worker.feeding import CountingCollator, GroupedByLength
from llmtui.core.worker.steps import StepLog


class Owner(Protocol):
    """What the Trainer asks of the attempt that owns it."""

    steps: StepLog

    def save(self, write: Callable[[], None]) -> None: ...

    def evaluate(self) -> dict[str, float]: ...

    def staged_folder(self) -> str: ...

    def smaller_batch(self, rows: int, cause: str) -> None: ...


@dataclass
class Settings:
    """What the subclass needs to know beyond `TrainingArguments`."""

    sampling: str
    lengths: list[int]
    auto_batch_size: bool
    micro_batch: int | None = None


class RunTrainer(Trainer):
    """Overrides as few methods as the run needs, each saying why."""

    def __init__(self, *args: Any, owner: Owner, collator: CountingCollator, settings: Settings, **kwargs: Any) -> None:
        super().__init__(*args, data_collator=collator, **kwargs)
        self.owner = owner
        self.settings = settings
        self._collator = collator
        self._group: list[dict[str, torch.Tensor]] = []
        self._group_done = 0
        self.group_tokens = (0, 0)
        self._catch_norms()

    def _catch_norms(self) -> None:
        """Note the gradient's norm on its way out of accelerate, as a tensor on the device."""
        clip = self.accelerator.clip_grad_norm_

        def clip_grad_norm_(*args: Any, **kwargs: Any) -> Any:
            norm = clip(*args, **kwargs)
            self.owner.steps.note_norm(norm)
            return norm

        self.accelerator.clip_grad_norm_ = clip_grad_norm_

    # Checkpoints go to a staging folder that the owner seals and renames into place.
    def _get_output_dir(self, trial: Any) -> str:
        return self.owner.staged_folder()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.owner.save(lambda: super(RunTrainer, self)._save_checkpoint(model, trial))

    # The Trainer's evaluation gathers logits, and its DataLoader draws from the training's random numbers.
    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        return self.owner.evaluate()

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = self.settings.lengths
        if self.settings.sampling == "group_by_length":
            group = self.args.train_batch_size * self.args.gradient_accumulation_steps
            return GroupedByLength(rows, group, self.args.seed, self)
        if self.settings.sampling == "sequential":
            return torch.utils.data.SequentialSampler(range(len(rows)))
        return super()._get_train_sampler(train_dataset)

    # The batches of the accumulation group are kept, so that a step that ran out of memory can be run again.
    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any) -> tuple[list[Any], Any]:
        batches, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._group, self._group_done = batches, 0
        self.group_tokens = self._collator.take(len(batches))
        return batches, items

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """One micro-step; after an out-of-memory error in smaller slices whose gradients add up to the same."""
        while True:
            try:
                loss = self._sliced(model, inputs, num_items_in_batch)
                break
            except RuntimeError as error:  # torch.OutOfMemoryError is one
                if not self.settings.auto_batch_size or not is_out_of_memory(error):
                    raise
                rows = int(inputs["input_ids"].shape[0])
            # Outside the handler: the traceback holds the step's tensors.
            self._shrink(rows)
            loss_before = self._run_again(model, num_items_in_batch)
            if loss_before is not None:
                self.owner.steps.add_loss(loss_before)
        self._group_done += 1
        self.owner.steps.add_loss(loss)
        return loss

    def _sliced(self, model: Any, inputs: Any, items: Any) -> torch.Tensor:
        """`Trainer.training_step` on slices of the micro-batch; `items` normalises each by the whole group's tokens."""
        micro = self.settings.micro_batch
        rows = int(inputs["input_ids"].shape[0])
        if micro is None or micro >= rows:
            return super().training_step(model, inputs, items)
        total: torch.Tensor | None = None
        for begin in range(0, rows, micro):
            part = {name: value[begin : begin + micro] for name, value in inputs.items()}
            loss = super().training_step(model, part, items)
            total = loss if total is None else total + loss
        assert total is not None
        return total

    def _shrink(self, rows: int) -> None:
        """Halve the micro-batch, and forget the gradients of the group's failed step."""
        current = min(rows, self.settings.micro_batch or rows)
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        if torch.cuda.is_available():
            cause = memory_sentence()
            torch.cuda.empty_cache()
        else:
            cause = ""
        if current == 1:
            raise GpuMemoryError(
                f"one row of the batch does not fit into the GPU's memory{cause}", place="training",
                hint="shorten dataset.max_length, turn on gradient_checkpointing, or quantise the base",
            )  # fmt: skip
        self.settings.micro_batch = current // 2
        self.owner.smaller_batch(self.settings.micro_batch, f"out of GPU memory in a step of {current} rows{cause}")

    def _run_again(self, model: Any, items: Any) -> torch.Tensor | None:
        """The earlier micro-steps of the group once more: their gradients went with those of the failed one."""
        self.owner.steps.restart_group()
        total: torch.Tensor | None = None
        for inputs in self._group[: self._group_done]:
            loss = self._sliced(model, inputs, items)
            total = loss if total is None else total + loss
        return total


class Hooks(TrainerCallback):
    """The Trainer's moments passed on to the attempt."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The plan is known."""
        self.owner.on_train_begin(state)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The learning rate the step is about to be taken with."""
        self.owner.on_pre_optimizer_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """A step has been issued."""
        self.owner.on_step_end(state, control)
        return control
