"""The plan event: what this attempt will do, with everything filled in."""

from __future__ import annotations

from typing import Any

import torch

from llmtui.core.preset import Preset
from llmtui.core.runs import events as ev
from llmtui.core.worker.arguments import warmup_steps
from llmtui.core.worker.loading import Loaded


def plan_event(
    preset: Preset, loaded: Loaded, *, attempt: int, from_step: int, per_epoch: int, total_steps: int
) -> ev.Plan:
    """The event.

    Args:
        from_step: the step of the checkpoint continued from.
        per_epoch: optimizer steps per epoch.
    """
    training, data, model = preset.training, loaded.data, loaded.model
    micro, accumulation = training.per_device_train_batch_size, training.gradient_accumulation_steps
    return ev.Plan(
        attempt=attempt,
        from_step=from_step,
        total_steps=total_steps,
        epochs=total_steps / per_epoch,
        steps_per_epoch=per_epoch,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=accumulation,
        processes=1,
        effective_batch=micro * accumulation,
        warmup_steps=warmup_steps(preset, total_steps),
        train_rows=len(data.train),
        val_rows=len(data.val) if data.val else 0,
        dropped=data.dropped,
        train_tokens=data.train.trained_tokens,
        tokens_per_epoch=data.train.tokens,
        trainable_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        total_parameters=_parameters(model),
        dtype=loaded.precision.compute,
        attention=str(getattr(model.config, "_attn_implementation", "")),
        quantization=preset.model.quantization,
        device=device_name(loaded.device),
        data_hash=data.data_hash,
        base_model=loaded.base,
        notes=loaded.notes,
    )


def _parameters(model: Any) -> int:
    """All parameters; bitsandbytes packs two nf4 values into a byte, PEFT knows how to count them."""
    if hasattr(model, "get_nb_trainable_parameters"):
        return int(model.get_nb_trainable_parameters()[1])
    return int(model.num_parameters())


def device_name(device: torch.device) -> str:
    """The card's name, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
