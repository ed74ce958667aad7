"""What one card holds when several share the work (DeepSpeed's ZeRO stages, FSDP, layers over cards).

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020, section 3:
stage 2 divides optimizer state and gradients by the number of ranks, stage 3 and FSDP the weights too.
"""

from __future__ import annotations

from typing import Final

from llmtui.core.forecast.memory import Part
from llmtui.core.preset import Preset

_STATE: Final = ("AdamW", "gradients")
_DIVIDED: Final[dict[str, tuple[str, ...]]] = {
    "zero2": _STATE, "zero3": (*_STATE, "weights"), "fsdp": (*_STATE, "weights"),
    "layers": (*_STATE, "weights", "LoRA", "activations", "cache"),
}  # fmt: skip
# DeepSpeed computes in 16-bit weights and gradients, and keeps the float32 master beside AdamW's moments.
_DEEPSPEED: Final = {"weights": 0.5, "gradients": 0.5, "AdamW": 1.5}


def share_out(parts: list[Part], preset: Preset) -> list[Part]:
    """The parts of the fullest card."""
    split = preset.gpu_split
    cards = len(split.gpus) if isinstance(split.gpus, list) else (split.processes or 1)
    ranks = split.processes or cards
    divided = _DIVIDED.get(split.strategy)
    if divided is None:
        return parts
    if split.strategy in ("zero2", "zero3") and preset.lora is None:
        parts = [Part(p.name, int(p.bytes * _DEEPSPEED.get(p.name, 1))) for p in parts]
    by = cards if split.strategy == "layers" else ranks
    return [Part(p.name, -(-p.bytes // by) if p.name in divided else p.bytes) for p in parts]
