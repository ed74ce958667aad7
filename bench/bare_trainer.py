"""The yardstick: a plain script with transformers' Trainer and PEFT, as people write it, with the same recipe.

`python -m bench.bare_trainer SPEC.json` trains on given token rows and prints one JSON line: it/s after the warm-up,
real tokens/s, losses of the first steps, peak memory. It uses nothing of llmtui.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Trainer, TrainerCallback, TrainingArguments

transformers.logging.set_verbosity_error()


class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Token rows; labels equal the tokens (train on everything)."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.rows[index]}


def collate(features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Right padding, labels -100 at pads."""
    length = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros((len(features), length), dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, -100)
    for i, feature in enumerate(features):
        n = len(feature["input_ids"])
        ids[i, :n] = torch.tensor(feature["input_ids"])
        mask[i, :n] = 1
        labels[i, :n] = ids[i, :n]
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class Clock(TrainerCallback):
    """Wall time from step `warm` to the end, with one synchronisation at each."""

    def __init__(self, warm: int) -> None:
        self.warm, self.begin, self.seconds = warm, 0.0, 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.warm:
            self._synchronize()
            self.begin = time.perf_counter()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._synchronize()
        self.seconds = time.perf_counter() - self.begin

    @staticmethod
    def _synchronize() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()


def load(spec: dict[str, Any]) -> torch.nn.Module:
    """The model of the recipe, with LoRA if asked."""
    quantization = {
        "none": None,
        "int8": BitsAndBytesConfig(load_in_8bit=True),
        "nf4": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                  bnb_4bit_compute_dtype=torch.bfloat16),
    }[spec["quantization"]]  # fmt: skip
    extra = {"quantization_config": quantization} if quantization else {}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(
        spec["model"], dtype=getattr(torch, spec["dtype"]), device_map={"": device}, **extra
    )
    model.config.use_cache = False
    if spec["kbit"]:
        model = prepare_model_for_kbit_training(
            model,
            use_gradient_checkpointing=spec["gradient_checkpointing"],
            gradient_checkpointing_kwargs={"use_reentrant": False},
        )
    elif spec["gradient_checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.enable_input_require_grads()
    if spec["lora"]:
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **spec["lora"]))
    return model  # type: ignore[no-any-return]


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    rows = json.loads(Path(spec["rows"]).read_text())
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    model, clock = load(spec), Clock(spec["warm"])
    arguments = TrainingArguments(
        output_dir=spec["output"], max_steps=spec["steps"], save_strategy="no", report_to=[], disable_tqdm=True,
        remove_unused_columns=False, logging_steps=spec["logging_steps"],
        per_device_train_batch_size=spec["batch"], learning_rate=spec["learning_rate"], seed=spec["seed"],
        bf16=spec["bf16"], fp16=spec["fp16"],
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=Rows(rows), data_collator=collate, callbacks=[clock])
    counted = {"tokens": 0}
    original = trainer.training_step

    def step(model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if trainer.state.global_step >= spec["warm"]:
            counted["tokens"] += spec["batch"] * inputs["input_ids"].shape[1]
        return original(model, inputs, *args, **kwargs)

    trainer.training_step = step
    trainer.train()
    cuda = torch.cuda.is_available()
    result = {
        "it_s": (spec["steps"] - spec["warm"]) / clock.seconds,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
        "peak_allocated_mib": torch.cuda.max_memory_allocated() >> 20 if cuda else None,
        "peak_reserved_mib": torch.cuda.max_memory_reserved() >> 20 if cuda else None,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
