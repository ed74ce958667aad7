"""The preset's keys as arguments of the libraries: one pure function per library object."""

from __future__ import annotations

import math
from typing import Any

from llmtui.core.preset import Preset
from llmtui.core.worker.precision import Precision, choose_precision


def training_arguments(
    preset: Preset, *, output: str, precision: Precision, evaluate: bool, device: str, total_steps: int
) -> dict[str, Any]:
    """Arguments of `transformers.TrainingArguments`.

    Args:
        output: folder for the Trainer's files (checkpoints are staged below it).
        evaluate: whether there are validation rows.
        total_steps: what a warm-up share below 1 is a share of.
    """
    training = preset.training
    return {
        "output_dir": output,
        "num_train_epochs": training.num_train_epochs,
        "max_steps": training.max_steps if training.max_steps is not None else -1,
        "learning_rate": training.learning_rate,
        "lr_scheduler_type": training.lr_scheduler_type,
        "warmup_steps": warmup_steps(preset, total_steps),
        "weight_decay": training.weight_decay,
        "max_grad_norm": training.max_grad_norm,
        "per_device_train_batch_size": training.per_device_train_batch_size,
        "per_device_eval_batch_size": training.per_device_eval_batch_size,
        "gradient_accumulation_steps": training.gradient_accumulation_steps,
        "eval_strategy": "steps" if evaluate and training.eval_steps else "no",
        "eval_steps": training.eval_steps,
        "save_strategy": "steps",
        "save_steps": preset.checkpoints.save_steps,
        "save_total_limit": None,  # rotation is ours: by manifest, valid ones only
        "seed": training.seed,
        "data_seed": training.seed,
        "bf16": precision.autocast == "bfloat16",
        "fp16": precision.autocast == "float16",
        "use_cpu": device == "cpu",
        # Losses are read from the device late and written as events; the Trainer's own logging would stop the device.
        "logging_strategy": "no",
        "logging_nan_inf_filter": False,
        "report_to": [],
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "dataloader_num_workers": 0,
        "push_to_hub": False,
    }


def warmup_steps(preset: Preset, total_steps: int) -> int:
    """Whole warm-up steps; a share of all steps, rounded up as the Trainer does, when the preset says less than 1."""
    wanted = preset.training.warmup_steps
    return math.ceil(wanted * total_steps) if wanted < 1 else int(wanted)


def lora_config(preset: Preset) -> dict[str, Any] | None:
    """Arguments of `peft.LoraConfig`; None without LoRA."""
    lora = preset.lora
    if lora is None:
        return None
    return {
        "task_type": "CAUSAL_LM",
        "r": lora.r,
        "lora_alpha": lora.lora_alpha,
        "lora_dropout": lora.lora_dropout,
        "target_modules": lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules),
        "bias": lora.bias,
        "use_rslora": lora.use_rslora,
        "use_dora": lora.use_dora,
    }


def quantization_config(preset: Preset, precision: Precision) -> dict[str, Any] | None:
    """Arguments of `transformers.BitsAndBytesConfig`; None for unquantised weights. dtypes are names."""
    model = preset.model
    if model.quantization == "int8":
        return {"load_in_8bit": True}
    if model.quantization == "nf4":
        return {
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": model.double_quant,
            "bnb_4bit_compute_dtype": model.compute_dtype if model.compute_dtype != "auto" else precision.compute,
        }
    return None


def load_arguments(preset: Preset, precision: Precision) -> dict[str, Any]:
    """Arguments of `from_pretrained`, without device and quantisation."""
    model = preset.model
    return {
        "revision": model.revision or "main",
        "dtype": precision.weights,
        "attn_implementation": "sdpa" if model.attention == "auto" else model.attention,
        "trust_remote_code": model.trust_remote_code,
        "weights_only": True,  # safetensors where there are any; a pickle may hold tensors and nothing else
    }


def generation_arguments(preset: Preset) -> dict[str, Any]:
    """Arguments of `generate`; sampling settings only when sampling, so that nothing warns of unused ones."""
    generation = preset.generation
    arguments: dict[str, Any] = {
        "max_new_tokens": generation.max_new_tokens,
        "min_new_tokens": generation.min_new_tokens or None,
        "do_sample": generation.do_sample,
        "repetition_penalty": generation.repetition_penalty,
        "num_beams": generation.num_beams,
    }
    if generation.do_sample:
        arguments |= {"temperature": generation.temperature, "top_p": generation.top_p, "top_k": generation.top_k}
    return arguments


def own_settings(preset: Preset) -> dict[str, Any]:
    """The keys that the worker's own code reads, beside those that become arguments of a library."""
    training, checkpoints = preset.training, preset.checkpoints
    return {
        "auto_batch_size": training.auto_batch_size,
        "train_sampling_strategy": training.train_sampling_strategy,
        "gradient_checkpointing": training.gradient_checkpointing,
        "logging_steps": training.logging_steps,
        "sample_prompts": training.sample_prompts,
        "early_stopping_patience": training.early_stopping_patience,
        "on_nan": training.on_nan,
        "save_total_limit": checkpoints.save_total_limit,
        "result": checkpoints.result,
        "metric": checkpoints.metric,
        "system": preset.generation.system,
        "gpus": preset.gpu_split.gpus,
    }


def everything(preset: Preset, device: str, capability: tuple[int, int] | None) -> dict[str, Any]:
    """All that a preset comes to in the worker, in one value to compare: two presets that differ must differ here.

    Args:
        device: cpu or cuda.
        capability: the card's compute capability.
    """
    precision = choose_precision(preset, device, capability)
    return {
        "model": preset.model.name_or_path,
        "load": load_arguments(preset, precision),
        "quantization": quantization_config(preset, precision),
        "lora": lora_config(preset),
        "trainer": training_arguments(
            preset, output="", precision=precision, evaluate=True, device=device, total_steps=1000
        ),
        "generation": generation_arguments(preset),
        "data": preset.dataset.model_dump(),
        "own": own_settings(preset),
    }
