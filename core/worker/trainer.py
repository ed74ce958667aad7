"""transformers' Trainer, subclassed where a run needs it: staged checkpoints, split steps, our own evaluation."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback

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


@contextmanager
def own_use_cache(model: Any, value: bool) -> Iterator[None]:
    """The model's own word on caching back in its config for a moment."""
    training = getattr(model.config, "use_cache", None)
    model.config.use_cache = value
    try:
        yield
    finally:
        model.config.use_cache = training


class RunTrainer(Trainer):  # type: ignore[misc]
    """Overrides as few methods as the run needs, each saying why."""

    def __init__(self, *args: Any, owner: Owner, collator: CountingCollator, settings: Settings, **kwargs: Any) -> None:
        self._own_use_cache = bool(getattr(kwargs["model"].config, "use_cache", True))
        super().__init__(*args, data_collator=collator, **kwargs)
        self.remove_callback(PrinterCallback)
        self.owner = owner
        self.settings = settings
        self.collator = collator
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

    # The Trainer turns the cache off for training; what is written must generate with it.
    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        with own_use_cache(self.model, self._own_use_cache):
            super().save_model(output_dir, _internal_call)

    # The Trainer reads a checkpoint's names as they are and passes over unknown ones. `save_pretrained` writes
    # some under older names (GPT-NeoX's `lm_head` as `embed_out`), so the head would silently stay as initialised
    # (transformers 5.24). `from_pretrained` knows the names; then every weight must fit.
    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        model = self.model if model is None else model
        if hasattr(model, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        saved = type(model).from_pretrained(resume_from_checkpoint, dtype=model.dtype)
        model.load_state_dict(saved.state_dict())

    # The Trainer's evaluation gathers logits, and its DataLoader draws from the training's random numbers.
    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        self.control.should_evaluate = False
        return self.owner.evaluate()

    # Nobody reads the sum, and walking all parameters in every step takes time.
    def floating_point_ops(self, inputs: Any) -> int:
        return 0

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
        self.group_tokens = self.collator.take(len(batches))
        return batches, items

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """One micro-step; after an out-of-memory error in smaller slices whose gradients add up to the same."""
        again = False
        while True:
            # The gradients of the group's earlier micro-steps went with those of the failed one.
            todo = [*self._group[: self._group_done], inputs] if again else [inputs]
            try:
                losses = [self._sliced(model, batch, num_items_in_batch) for batch in todo]
                break
            except RuntimeError as error:  # torch.OutOfMemoryError is one
                if not self.settings.auto_batch_size or not is_out_of_memory(error):
                    raise
                cause = str(error).partition("\n")[0]
            # Outside the handler: the traceback holds the step's tensors.
            self._shrink(max(int(batch["input_ids"].shape[0]) for batch in todo), cause)
            again = True
        if again:
            self.owner.steps.restart_group()
        for loss in losses:
            self.owner.steps.add_loss(loss)
        self._group_done += 1
        return losses[-1]

    def _sliced(self, model: Any, inputs: Any, items: Any) -> torch.Tensor:
        """`Trainer.training_step` on slices of the micro-batch; `items` normalises each by the whole group's tokens."""
        micro = self.settings.micro_batch
        rows = int(inputs["input_ids"].shape[0])
        if micro is None or micro >= rows:
            loss: torch.Tensor = super().training_step(model, inputs, items)
            return loss
        losses = [
            super(RunTrainer, self).training_step(
                model, {name: value[begin : begin + micro] for name, value in inputs.items()}, items
            )
            for begin in range(0, rows, micro)
        ]
        return torch.stack(losses).sum()

    def _shrink(self, rows: int, error: str) -> None:
        """Halve the micro-batch, and forget the gradients of the group's failed step."""
        current = min(rows, self.settings.micro_batch or rows)
        self.model.zero_grad(set_to_none=True)
        gc.collect()
        numbers = memory_sentence()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if current == 1:
            raise GpuMemoryError(
                f"one row of the batch does not fit into the GPU's memory{numbers}", place="training",
                hint="shorten dataset.max_length, turn on gradient_checkpointing, or quantise the base",
            )  # fmt: skip
        self.settings.micro_batch = current // 2
        said = f"out of GPU memory in a micro-step of {current} rows{numbers}: {error}"
        self.owner.smaller_batch(self.settings.micro_batch, said)


class Hooks(TrainerCallback):  # type: ignore[misc]
    """The Trainer's moments passed on to the attempt."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """The plan is known."""
        self.owner.on_train_begin(state, control)
        return control

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The learning rate the step is about to be taken with."""
        self.owner.on_pre_optimizer_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """A step has been issued."""
        self.owner.on_step_end(state, control)
        return control
