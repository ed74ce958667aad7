"""A loaded model made ready to train: frozen and quantised parts prepared, checkpointing, LoRA."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import torch

from llmtui.core.errors import DataError
from llmtui.core.preset import Preset
from llmtui.core.worker.arguments import lora_config

_LINEAR_KINDS = ("Conv1D", "Linear8bitLt", "Linear4bit")


def make_trainable(model: Any, preset: Preset) -> Any:
    """Prepare a quantised base, turn gradient checkpointing on and put LoRA in, as the preset says.

    Checkpointing is the non-reentrant kind: the other breaks under DDP, and with frozen inputs. Except over an int8
    base: bitsandbytes (0.50) keeps each layer's input outside of autograd's saved tensors, so that only the reentrant
    kind frees it (OpenCALM-7B's shape, 8 rows of 256 tokens: 208 MiB a layer, 6.5 GiB in all; the same losses).

    Raises:
        DataError: a LoRA target that the model does not have.
    """
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    check_targets(model, preset)
    checkpointing = preset.training.gradient_checkpointing
    how = {"use_reentrant": preset.model.quantization == "int8"}
    if preset.model.quantization != "none":
        model = prepare_model_for_kbit_training(
            model, use_gradient_checkpointing=checkpointing, gradient_checkpointing_kwargs=how
        )
    elif checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)
        if preset.lora is not None:
            model.enable_input_require_grads()
    arguments = lora_config(preset)
    return model if arguments is None else get_peft_model(model, LoraConfig(**arguments))


def linear_names(model: Any) -> list[str]:
    """The last parts of the names of all linear layers, the output head left out."""
    head = model.get_output_embeddings()
    return sorted(
        {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if module is not head and (isinstance(module, torch.nn.Linear) or type(module).__name__ in _LINEAR_KINDS)
        }
    )


def check_targets(model: Any, preset: Preset) -> None:
    """Refuse LoRA targets that the model does not have, even when others match (PEFT passes over those in silence).

    Raises:
        DataError: lists the names there are.
    """
    lora = preset.lora
    if lora is None or isinstance(lora.target_modules, str):
        return
    every = [name for name, _ in model.named_modules()]
    endings = {".".join(parts[-n:]) for parts in (name.split(".") for name in every) for n in range(1, len(parts) + 1)}
    wrong = [target for target in lora.target_modules if target not in endings]
    if not wrong:
        return
    names = linear_names(model)
    near = [match[0] for target in wrong if (match := get_close_matches(target, names, n=1))]
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise DataError(
        f"the model has no layer named {', '.join(wrong)}", place="lora.target_modules",
        hint=f"{meant}its linear layers are {', '.join(names)}; or write all-linear",
    )  # fmt: skip
