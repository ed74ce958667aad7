"""What an unknown key was probably meant to be: a near name, the right section, an old or foreign spelling."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from llmtui.core.preset.leaves import section_model, walk_leaves, walk_sections

# Old names of transformers and PEFT, and the names other fine-tuning tools use.
_FOREIGN: Final = {
    "evaluation_strategy": "training.eval_steps", "eval_strategy": "training.eval_steps",
    "save_strategy": "checkpoints.save_steps", "warmup_ratio": "training.warmup_steps (a share when below 1)",
    "load_in_8bit": "model.quantization: int8", "load_in_4bit": "model.quantization: nf4",
    "quantization_bit": "model.quantization", "cutoff_len": "dataset.max_length",
    "sequence_len": "dataset.max_length", "max_seq_length": "dataset.max_length", "max_seq_len": "dataset.max_length",
    "micro_batch_size": "training.per_device_train_batch_size", "batch_size": "training.per_device_train_batch_size",
    "base_model": "model.name_or_path", "model_name_or_path": "model.name_or_path", "val_set_size": "dataset.val_size",
    "max_samples": "dataset.limit", "num_epochs": "training.num_train_epochs", "epochs": "training.num_train_epochs",
    "lr": "training.learning_rate", "lr_scheduler": "training.lr_scheduler_type", "lora_r": "lora.r",
    "lora_rank": "lora.r", "lora_alpha": "lora.lora_alpha", "lora_dropout": "lora.lora_dropout",
    "lora_target": "lora.target_modules", "lora_target_modules": "lora.target_modules",
    "targets": "lora.target_modules", "torch_dtype": "model.dtype", "bf16": "model.dtype: bfloat16",
    "fp16": "model.dtype: float16", "no_cuda": "gpu_split.gpus: none", "use_cpu": "gpu_split.gpus: none",
    "device_map": "gpu_split.strategy: layers", "attn_implementation": "model.attention",
    "group_by_length": "training.train_sampling_strategy: group_by_length", "sample_packing": "training.packing",
    "train_on_inputs": "dataset.train_on", "train_on_prompt": "dataset.train_on", "use_peft": "lora",
    "resume_from_checkpoint": "llmtui resume RUN", "output_dir": "nothing: a run has a folder of its own",
    "overwrite_output_dir": "nothing: a run has a folder of its own",
    "load_best_model_at_end": "checkpoints.result: best", "metric_for_best_model": "checkpoints.metric",
}  # fmt: skip


def unknown_key(dotted: str) -> tuple[str, str]:
    """The problem and the cure for a key that the schema does not have."""
    section, _, name = dotted.rpartition(".")
    problem = f'"{name}" is not a key' + (f" of {section}" if section else "")
    spelled = name.replace("-", "_")
    model = section_model(section)
    siblings = list(model.model_fields) if model else []
    if spelled in siblings:
        return problem, f"write {spelled}"
    if spelled in _FOREIGN:
        return problem, f"use {_FOREIGN[spelled]}"
    everywhere = {leaf.name: leaf.key for leaf in reversed(list(walk_leaves()))}
    if spelled in everywhere:
        return problem, f"it belongs under {everywhere[spelled]}"
    close = get_close_matches(spelled, siblings, n=1, cutoff=0.6)
    if close:
        return problem, f"did you mean {close[0]}?"
    names = [*everywhere, *_FOREIGN, *(s.key for s in walk_sections())]
    close = get_close_matches(spelled, names, n=1, cutoff=0.6)
    if close:
        found = everywhere.get(close[0]) or _FOREIGN.get(close[0]) or close[0]
        return problem, f"did you mean {found}?"
    return problem, f"the keys here are {', '.join(siblings)}" if siblings else "remove it"
