"""What an unknown key was probably meant to be: a near name, the right section, an old or foreign spelling."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from llmtui.core.preset.leaves import section_model, walk_leaves, walk_sections

_OWN_FOLDER: Final = "nothing: a run has a folder of its own"
_ADAMW: Final = "nothing: training uses AdamW with Trainer's defaults"
_BY_ITSELF: Final = "nothing: this is chosen by itself"
# Old names of transformers and PEFT, and the names other fine-tuning tools use (LLaMA-Factory, Axolotl, TRL).
_FOREIGN: Final = {
    "evaluation_strategy": "training.eval_steps", "eval_strategy": "training.eval_steps",
    "do_eval": "training.eval_steps", "save_strategy": "checkpoints.save_steps",
    "logging_strategy": "training.logging_steps", "warmup_ratio": "training.warmup_steps (a share when below 1)",
    "load_in_8bit": "model.quantization: int8", "load_in_4bit": "model.quantization: nf4",
    "bnb_4bit_compute_dtype": "model.compute_dtype", "bnb_4bit_use_double_quant": "model.double_quant",
    "bnb_4bit_quant_type": "model.quantization: nf4", "double_quantization": "model.double_quant",
    "quantization_bit": "model.quantization", "quantization_method": "model.quantization",
    "cutoff_len": "dataset.max_length", "sequence_len": "dataset.max_length", "block_size": "dataset.max_length",
    "max_seq_length": "dataset.max_length", "max_seq_len": "dataset.max_length",
    "model_max_length": "dataset.max_length", "micro_batch_size": "training.per_device_train_batch_size",
    "batch_size": "training.per_device_train_batch_size", "train_batch_size": "training.per_device_train_batch_size",
    "eval_batch_size": "training.per_device_eval_batch_size", "base_model": "model.name_or_path",
    "model_name": "model.name_or_path", "model_name_or_path": "model.name_or_path", "model_id": "model.name_or_path",
    "path": "name_or_path", "name": "name_or_path", "dataset_name": "dataset.name_or_path",
    "datasets": "dataset.sources", "train_file": "dataset.name_or_path", "data_path": "dataset.name_or_path",
    "val_set_size": "dataset.val_size", "test_size": "dataset.val_size", "validation_split": "dataset.val_size",
    "max_samples": "dataset.limit", "prompt_template": "dataset.template", "chat_template": "dataset.template: chat",
    "prompt": "dataset.template, or training.sample_prompts", "num_epochs": "training.num_train_epochs",
    "epochs": "training.num_train_epochs", "lr": "training.learning_rate",
    "lr_scheduler": "training.lr_scheduler_type", "gradient_clipping": "training.max_grad_norm",
    "grad_accum_steps": "training.gradient_accumulation_steps", "early_stopping": "training.early_stopping_patience",
    "rank": "lora.r", "lora_r": "lora.r", "lora_rank": "lora.r", "alpha": "lora.lora_alpha",
    "dropout": "lora.lora_dropout", "lora_target": "lora.target_modules", "lora_bias": "lora.bias",
    "lora_target_modules": "lora.target_modules", "lora_target_linear": "lora.target_modules: all-linear",
    "targets": "lora.target_modules", "finetuning_type": "lora (the section), or nothing for full fine-tuning",
    "adapter": "lora (the section)", "use_peft": "lora (the section)", "peft": "lora (the section)",
    "stage": "task: finetune", "torch_dtype": "model.dtype", "compute_type": "model.dtype",
    "bf16": "model.dtype: bfloat16", "fp16": "model.dtype: float16", "flash_attn": "model.attention",
    "flash_attention": "model.attention", "attn_implementation": "model.attention",
    "no_cuda": "gpu_split.gpus: none", "use_cpu": "gpu_split.gpus: none", "device": "gpu_split.gpus",
    "device_map": "gpu_split.strategy: layers", "num_gpus": "gpu_split.processes",
    "nproc_per_node": "gpu_split.processes", "deepspeed": "gpu_split.strategy, or gpu_split.deepspeed_config",
    "group_by_length": "training.train_sampling_strategy: group_by_length", "sample_packing": "training.packing",
    "train_on_inputs": "dataset.train_on", "train_on_prompt": "dataset.train_on",
    "completion_only_loss": "dataset.train_on: response", "gradient_checkpointing_kwargs": _BY_ITSELF,
    "ddp_find_unused_parameters": _BY_ITSELF, "pad_token": _BY_ITSELF, "newline_token": "dataset.template: rinna",
    "optim": _ADAMW, "optimizer": _ADAMW, "adam_beta1": _ADAMW, "adam_beta2": _ADAMW, "adam_epsilon": _ADAMW,
    "resume_from_checkpoint": "llmtui resume RUN", "output_dir": _OWN_FOLDER, "overwrite_output_dir": _OWN_FOLDER,
    "load_best_model_at_end": "checkpoints.result: best", "metric_for_best_model": "checkpoints.metric",
    "report_to": "nothing: llmtui export has the figures", "push_to_hub": "nothing: the result stays on this machine",
    "token": "HF_TOKEN in the environment", "hub_token": "HF_TOKEN in the environment",
    "use_auth_token": "HF_TOKEN in the environment", "max_tokens": "generation.max_new_tokens",
}  # fmt: skip


def unknown_key(path: Sequence[str]) -> tuple[str, str]:
    """The problem and the cure for a key that the schema does not have.

    Args:
        path: sections and key, such as `("training", "learning_rat")`.
    """
    section, name = ".".join(path[:-1]), path[-1]
    model = section_model(section)
    siblings = list(model.model_fields) if model else []
    spelled = name.replace("-", "_").strip().lower()
    problem = f'unknown key "{name}"' + (f" in {section}" if section else "")
    return problem, _cure(name, spelled, section, siblings)


def _cure(name: str, spelled: str, section: str, siblings: list[str]) -> str:
    if spelled in siblings:
        return f"write {spelled}"
    if "." in name:
        inner, _, last = name.rpartition(".")
        return f"write it inside its section: {inner.replace('.', ': {')}: {{{last}: …}}" + "}" * inner.count(".")
    foreign = _FOREIGN.get(spelled)
    if foreign is not None:
        if foreign == "name_or_path":
            return "use name_or_path" if foreign in siblings else "did you mean model.name_or_path?"
        return f"use {foreign}" if not foreign.startswith("nothing") else f"remove it; {foreign.split(': ', 1)[1]}"
    everywhere = {leaf.name: leaf.key for leaf in reversed(list(walk_leaves()))}
    sections = [info.key for info in walk_sections()]
    if spelled in everywhere:
        return f"it belongs under {everywhere[spelled]}" if section else f"write it as {everywhere[spelled]}"
    if spelled in sections:
        return f"move the section {spelled} to the top level"
    near = _nearest(spelled, siblings, [*everywhere, *_FOREIGN, *sections])
    if near in siblings:
        return f"did you mean {near}?"
    if near is not None:
        found = everywhere.get(near) or _FOREIGN.get(near) or near
        return f"did you mean {found}?" if not found.startswith("nothing") else "remove it"
    return f"the keys here are {', '.join(siblings)}" if siblings else "remove it"


def _nearest(spelled: str, siblings: Sequence[str], elsewhere: Sequence[str]) -> str | None:
    """The most similar name; one of the same section wins unless another is clearly nearer."""
    scored = [(_similar(spelled, name) + 0.05, name) for name in siblings]
    scored += [(_similar(spelled, name) - 0.1, name) for name in elsewhere]
    score, name = max(scored, default=(0.0, ""))
    return name if score >= 0.65 else None


def _similar(a: str, b: str) -> float:
    return SequenceMatcher(None, a, b).ratio()
