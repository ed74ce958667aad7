"""How many steps rows make."""

from __future__ import annotations

import math

from llmtui.core.preset import Preset


def steps_of(preset: Preset, rows: int) -> tuple[int, int]:
    """Optimizer steps per epoch and in all, as the Trainer counts them (a short last batch and group count)."""
    training = preset.training
    batches = math.ceil(rows / training.per_device_train_batch_size)
    per_epoch = math.ceil(batches / training.gradient_accumulation_steps)
    return per_epoch, training.max_steps or math.ceil(training.num_train_epochs * per_epoch)


def batches_of(preset: Preset, rows: int) -> int:
    """Micro-batches of the whole training; each epoch's last group may be short."""
    training = preset.training
    per_epoch, total = steps_of(preset, rows)
    epochs, rest = divmod(total, per_epoch)
    batches = math.ceil(rows / training.per_device_train_batch_size)
    return epochs * batches + min(batches, rest * training.gradient_accumulation_steps)
