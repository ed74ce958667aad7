"""Everything an attempt needs before its first step: model, tokenizer, tokens, in the order that fails early."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from llmtui.core.data import Prepared, prepare
from llmtui.core.data.chat_templates import use_chat_template
from llmtui.core.data.identity import cache_key
from llmtui.core.errors import MachineError
from llmtui.core.preset import Preset
from llmtui.core.runs.attempt import AttemptInfo
from llmtui.core.worker.adapting import make_trainable
from llmtui.core.worker.memory import memory_event, weight_bytes
from llmtui.core.worker.models import find_model, load_config, load_model, load_tokenizer, pad_token, positions
from llmtui.core.worker.precision import Precision, choose_precision
from llmtui.core.worker.session import Session


@dataclass
class Loaded:
    """A model with its data, ready to train. `weights` are the base's bytes on the device."""

    model: Any
    tokenizer: Any
    data: Prepared
    pad_id: int
    device: torch.device
    precision: Precision
    weights: int
    base: str
    own_use_cache: bool
    notes: list[str] = field(default_factory=list)


def load(session: Session, preset: Preset, attempt: AttemptInfo) -> Loaded:
    """Find, tokenise, load: names and data that are wrong are found before weights are read.

    Raises:
        StopRequested: asked to stop meanwhile.
        LlmtuiError: with place and cure.
    """
    from transformers import set_seed

    def on_progress(phase: str, done: int, total: int | None, text: str = "") -> None:
        session.phase(phase, done, total, text)  # type: ignore[arg-type]
        session.check_stop()

    device, notes = choose_device(preset)
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    precision = choose_precision(preset, device.type, capability)
    on_progress("loading_model", 0, None, "finding it")
    folder = session.directory.path
    location = find_model(preset, folder, folder / "base", on_progress)
    tokenizer = load_tokenizer(location, preset)
    use_chat_template(preset.dataset.template, tokenizer)
    pad_id, pad_note = pad_token(tokenizer)
    data = prepare(
        preset, tokenizer, base_folder=folder, max_positions=positions(load_config(location, preset)),
        on_progress=on_progress, key=cache_key(preset, folder, Path(location.path)),
    )  # fmt: skip
    for text in data.warnings:
        session.warn("data", text)
    on_progress("loading_model", 0, None, "weights")
    model = load_model(location, preset, precision, str(device), on_progress)
    weights = weight_bytes(model)
    session.write(memory_event("loading_model", weights, tuple(gpu.uuid for gpu in attempt.gpus)))
    set_seed(preset.training.seed)  # LoRA's first weights do not depend on what was drawn before
    own_use_cache = bool(getattr(model.config, "use_cache", True))
    return Loaded(
        model=make_trainable(model, preset), tokenizer=tokenizer, data=data, pad_id=pad_id, device=device,
        precision=precision, weights=weights, base=preset.model.name_or_path, own_use_cache=own_use_cache,
        notes=[note for note in (*notes, location.said, pad_note) if note],
    )  # fmt: skip


def choose_device(preset: Preset) -> tuple[torch.device, list[str]]:
    """The device this process trains on (the supervisor has named its card in the environment), and what to say.

    Raises:
        MachineError: the preset names cards and torch sees none.
    """
    wanted = preset.gpu_split.gpus
    if wanted == "none":
        return torch.device("cpu"), []
    if torch.cuda.is_available():
        return torch.device("cuda:0"), []
    if wanted != "auto":
        raise MachineError("torch sees no GPU", place="gpu_split.gpus",
                           hint="llmtui gpus says why; gpus: none trains on the CPU")  # fmt: skip
    return torch.device("cpu"), ["there is no GPU here; training runs on the CPU"]
