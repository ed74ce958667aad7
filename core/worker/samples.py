"""Answers to the preset's prompts, so that a person sees what the numbers mean."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from llmtui.core.data import decode_answer, prompt_text
from llmtui.core.data.prompts import prompt_ids
from llmtui.core.preset import Preset
from llmtui.core.runs import events as ev
from llmtui.core.worker.arguments import generation_arguments


def answer_prompts(
    model: Any,
    tokenizer: Any,
    preset: Preset,
    *,
    step: int,
    device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
    write: Callable[[ev.Sample], None],
    on_progress: Callable[[int, int], None],
) -> None:
    """Generate an answer to every prompt of `training.sample_prompts`, one by one, and write it.

    The random state is put back afterwards, so that the training curve is the same with and without samples.
    """
    prompts = preset.training.sample_prompts
    was_training, used_cache = model.training, model.config.use_cache
    devices = [device] if device.type == "cuda" else []
    model.eval()
    model.config.use_cache = True
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.manual_seed(preset.training.seed)
            for index, prompt in enumerate(prompts):
                on_progress(index, len(prompts))
                write(_answer(model, tokenizer, preset, prompt, index, step, device, autocast))
    finally:
        model.config.use_cache = used_cache
        model.train(was_training)
    on_progress(len(prompts), len(prompts))


def _answer(
    model: Any, tokenizer: Any, preset: Preset, prompt: str, index: int, step: int, device: torch.device,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> ev.Sample:  # fmt: skip
    template = preset.dataset.template
    text = prompt_text(template, tokenizer, prompt, preset.generation.system)
    ids = prompt_ids(tokenizer, text)
    batch = torch.tensor([ids], device=device)
    ends = _ends(model, tokenizer)
    began = time.perf_counter()
    with autocast():
        out = model.generate(
            input_ids=batch, attention_mask=torch.ones_like(batch), eos_token_id=ends or None, use_cache=True,
            pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (ends or [0])[0],
            **generation_arguments(preset),
        )  # fmt: skip
    made = out[0, len(ids) :].tolist()
    stopped = "end" if made and made[-1] in ends else "length"
    return ev.Sample(
        step=step, index=index, prompt=prompt, text=decode_answer(template, tokenizer, made), tokens=len(made),
        seconds=time.perf_counter() - began, stopped=stopped,
    )  # fmt: skip


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """All end tokens: the tokenizer's and those of the model's generation settings."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    ends = configured if isinstance(configured, list) else [configured]
    return [int(e) for e in dict.fromkeys([tokenizer.eos_token_id, *ends]) if e is not None]
