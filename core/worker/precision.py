"""Which number types a device trains in."""

from __future__ import annotations

from dataclasses import dataclass

from llmtui.core.errors import MachineError
from llmtui.core.preset import Preset


@dataclass(frozen=True, slots=True)
class Precision:
    """`weights`: dtype of unquantised weights; `autocast`: the type products are computed in, or None."""

    weights: str
    autocast: str | None

    @property
    def compute(self) -> str:
        """What products are computed in."""
        return self.autocast or self.weights


def good_type(device: str, capability: tuple[int, int] | None) -> str:
    """bfloat16 from compute capability 8.0 on, float16 on older cards (no native bfloat16), float32 on the CPU."""
    if device != "cuda" or capability is None:
        return "float32"
    return "bfloat16" if capability >= (8, 0) else "float16"


def choose_precision(preset: Preset, device: str, capability: tuple[int, int] | None) -> Precision:
    """Types for a preset on a device.

    A frozen base is kept in the good type; weights that are trained whole stay float32 under autocast, unless the
    preset names their type. LoRA weights are float32 in any case (PEFT's `autocast_adapter_dtype`).

    Raises:
        MachineError: bfloat16 is asked of a card that has none.
    """
    good = good_type(device, capability)
    wanted = preset.model.dtype
    if wanted == "bfloat16" and device == "cuda" and capability is not None and capability < (8, 0):
        raise MachineError(
            f"this card (compute capability {capability[0]}.{capability[1]}) has no native bfloat16",
            place="model.dtype", hint="use dtype: auto or float16",
        )  # fmt: skip
    if device != "cuda":
        if wanted == "float16":
            raise MachineError("float16 does not train on the CPU", place="model.dtype", hint="use dtype: auto")
        return Precision(wanted if wanted != "auto" else "float32", None)
    if wanted == "float32":
        return Precision("float32", None)
    if wanted == "auto":
        return Precision(good if preset.lora is not None else "float32", good)
    if wanted == "float16" and preset.lora is None:
        return Precision("float32", "float16")  # GradScaler cannot unscale float16 gradients
    return Precision(wanted, wanted)
