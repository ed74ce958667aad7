"""The model and tokenizer of a preset, loaded as it says and made ready to train."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from llmtui.core.errors import DataError, LlmtuiError
from llmtui.core.preset import Preset
from llmtui.core.worker.arguments import load_arguments, lora_config, quantization_config
from llmtui.core.worker.failures import hub_error
from llmtui.core.worker.gguf import converted
from llmtui.core.worker.locate import INITIALISE, Location, locate
from llmtui.core.worker.precision import Precision


@dataclass
class Loaded:
    """A model with what was found out about it."""

    model: Any
    tokenizer: Any
    base: str
    attention: str
    max_positions: int | None
    notes: list[str]


def find_model(preset: Preset, base_folder: Path) -> Location:
    """Where the preset's model is; a GGUF file is converted first, an adapter merged into its base."""
    location = locate(preset.model.name_or_path, base_folder)
    if location.gguf is not None:
        return Location(str(converted(location.gguf)), said=f"{location.gguf.name} was converted into the cache")
    return location


def load_tokenizer(location: Location, preset: Preset) -> Any:
    """The tokenizer beside the model (or beside the adapter, which keeps its own)."""
    from transformers import AutoTokenizer

    source = (
        location.adapter
        if location.adapter and (location.adapter / "tokenizer_config.json").is_file()
        else location.path
    )
    try:
        return AutoTokenizer.from_pretrained(
            source, revision=preset.model.revision or "main", trust_remote_code=preset.model.trust_remote_code
        )
    except LlmtuiError:
        raise
    except Exception as error:
        raise hub_error(preset.model.name_or_path, error) from error


def load_model(location: Location, preset: Preset, precision: Precision, device: str) -> Any:
    """The base model on its device, quantised as the preset says."""
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    arguments = load_arguments(preset, precision)
    arguments["dtype"] = getattr(torch, arguments["dtype"])
    quantization = quantization_config(preset, precision)
    if quantization is not None:
        if "bnb_4bit_compute_dtype" in quantization:
            quantization["bnb_4bit_compute_dtype"] = getattr(torch, quantization["bnb_4bit_compute_dtype"])
        arguments["quantization_config"] = BitsAndBytesConfig(**quantization)
    try:
        if location.initialise:
            return _initialised(location, arguments, preset, device, quantization is not None)
        path = str(_merged(location)) if location.adapter else location.path
        return AutoModelForCausalLM.from_pretrained(path, device_map={"": device}, **arguments)
    except (LlmtuiError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise hub_error(preset.model.name_or_path, error) from error


def _initialised(location: Location, arguments: dict[str, Any], preset: Preset, device: str, quantised: bool) -> Any:
    """Random weights from the config, drawn with the preset's seed (the marker does not go into results)."""
    import tempfile

    from transformers import AutoConfig, AutoModelForCausalLM, set_seed

    config = AutoConfig.from_pretrained(location.path)
    if hasattr(config, INITIALISE):
        delattr(config, INITIALISE)
    set_seed(preset.training.seed)
    model = AutoModelForCausalLM.from_config(
        config, dtype=arguments["dtype"], attn_implementation=arguments["attn_implementation"]
    )
    if not quantised:
        return model.to(device)
    with tempfile.TemporaryDirectory() as folder:  # bitsandbytes quantises while loading
        model.save_pretrained(folder)
        return AutoModelForCausalLM.from_pretrained(folder, device_map={"": device}, **arguments)


def _merged(location: Location) -> Path:
    """The adapter merged into its base, kept in the cache under the adapter's hash."""
    import hashlib
    import os
    import shutil

    from llmtui.core.home import cache_folder
    from llmtui.core.worker.merge import merge_adapter

    assert location.adapter is not None
    weights = location.adapter / "adapter_model.safetensors"
    identity = hashlib.sha256(weights.read_bytes() + location.path.encode()).hexdigest()[:16]
    target = cache_folder() / f"merged-{identity}"
    if not (target / "config.json").is_file():
        staging = target.with_name(f".{target.name}-{os.getpid()}")
        merge_adapter(location.path, location.adapter, staging, check=False)
        try:
            staging.rename(target)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
    return target


def linear_names(model: Any) -> set[str]:
    """The last parts of the names of all linear layers, the output head left out."""
    head = model.get_output_embeddings()
    names = set()
    for name, module in model.named_modules():
        kind = type(module).__name__
        if module is not head and (
            isinstance(module, torch.nn.Linear) or kind in ("Conv1D", "Linear8bitLt", "Linear4bit")
        ):
            names.add(name.rpartition(".")[2])
    return names


def check_targets(model: Any, preset: Preset) -> None:
    """Refuse LoRA targets that the model does not have, even when others match.

    Raises:
        DataError: lists the names there are.
    """
    lora = preset.lora
    if lora is None or isinstance(lora.target_modules, str):
        return
    every = {name for name, _ in model.named_modules()} | {n.rpartition(".")[2] for n, _ in model.named_modules()}
    wrong = [
        name for name in lora.target_modules if name not in every and not any(m.endswith(f".{name}") for m in every)
    ]
    if wrong:
        raise DataError(
            f"the model has no layer named {', '.join(wrong)}", place="lora.target_modules",
            hint=f"its linear layers are {', '.join(sorted(linear_names(model)))}; or write all-linear",
        )  # fmt: skip


def make_trainable(model: Any, preset: Preset) -> Any:
    """Prepare a quantised base, turn checkpointing on and put LoRA in, as the preset says."""
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    model.config.use_cache = False
    checkpointing = preset.training.gradient_checkpointing
    if preset.model.quantization != "none":
        model = prepare_model_for_kbit_training(
            model,
            use_gradient_checkpointing=checkpointing,
            gradient_checkpointing_kwargs={"use_reentrant": False},
        )
    elif checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if preset.lora is not None:
            model.enable_input_require_grads()
    arguments = lora_config(preset)
    if arguments is None:
        return model
    check_targets(model, preset)
    return get_peft_model(model, LoraConfig(**arguments))


def max_positions(model: Any) -> int | None:
    """The longest sequence the model was made for; None when its config does not say."""
    config = model.config
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def pad_token(tokenizer: Any) -> tuple[int, str]:
    """A pad token id and what was chosen. Padding is masked by position, so an end token may serve."""
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id), f"padding with {tokenizer.pad_token!r}"
    for name in ("unk_token", "eos_token"):
        identity = getattr(tokenizer, f"{name}_id")
        if identity is not None:
            tokenizer.pad_token = getattr(tokenizer, name)
            return int(identity), f"the tokenizer has no pad token; padding with {getattr(tokenizer, name)!r}, masked"
    return 0, "the tokenizer has no pad token; padding with token 0, masked"
