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
