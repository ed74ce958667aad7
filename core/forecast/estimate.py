"""The forecast of a preset: memory by part and card, steps, disk; a verdict for each card."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from llmtui.core.forecast.finding import find_config
from llmtui.core.forecast.memory import (
    Part,
    generation_parts,
    longest,
    trainable_parameters,
    training_parts,
)
from llmtui.core.forecast.rows import train_rows
from llmtui.core.forecast.shape import Shape, shape_of
from llmtui.core.forecast.sharing import share_out
from llmtui.core.home import home_path
from llmtui.core.preset import Preset
from llmtui.core.runs.events import HardwareGpu

Verdict = Literal["fits", "tight", "does not fit", "unknown"]
# What the process holds beyond the allocator's peak, measured over 54 recipes: blocks kept for reuse grow with the
# logits; the CUDA context and its libraries are larger on Hopper and newer cards.
_KEPT_OF_LOGITS: Final = 0.35
_KEPT_OF_REST: Final = 0.02
_CONTEXT: Final = 600 << 20
_LARGE_CONTEXT: Final = 1450 << 20
_LARGE_CARDS: Final = ("H100", "H200", "GH200", "H800", "H20", "B100", "B200", "GB200", "B300", "GB300")
_RESERVE: Final = 0.04  # of the card, for what no arithmetic knows


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """Whether it fits one card. `needed` is the process's own memory on such a card."""

    index: int
    name: str
    total: int | None
    free: int | None
    verdict: Verdict
    needed: int | None = None


@dataclass(frozen=True)
class Forecast:
    """What a preset will take, before anything loads. All sizes are estimates in bytes; None is unknown.

    `parts` sum up to `allocated`, the peak of torch's allocator per card; `process` is what the card will show for it.
    """

    source: str
    parameters: int | None = None
    trainable: int | None = None
    parts: tuple[Part, ...] = ()
    allocated: int | None = None
    process: int | None = None
    cache_bytes_per_token: int | None = None
    checkpoint_bytes: int | None = None
    result_bytes: int | None = None
    disk_bytes: int | None = None
    disk_free: int | None = None
    effective_batch: int = 0
    rows: int | None = None
    steps_per_epoch: int | None = None
    total_steps: int | None = None
    gpus: tuple[GpuVerdict, ...] = ()
    notes: tuple[str, ...] = ()


def forecast(preset: Preset, base_folder: Path, gpus: Sequence[HardwareGpu] | None = None) -> Forecast:
    """Work out what a preset takes.

    Args:
        base_folder: what relative paths in the preset are relative to.
        gpus: the cards to judge against; None asks NVML.
    """
    cards = _cards(preset, gpus)
    config, source = find_config(preset.model.name_or_path, base_folder)
    shape = shape_of(config) if config else None
    known = _work(preset, base_folder)
    if shape is None:
        family = f"{config.get('model_type')} is no family whose arithmetic is known here" if config else source
        note = f"the model's shape is not known ({family}), so memory is not either"
        return Forecast(source=source, notes=(note,), gpus=tuple(_verdict(card, None) for card in cards), **known)
    on_gpu = preset.gpu_split.gpus != "none"
    parts = _parts(preset, shape, preset.training.per_device_train_batch_size, on_gpu)
    return Forecast(
        source=source, parameters=shape.parameters, parts=tuple(parts), allocated=_sum(parts),
        process=_process(parts, "", on_gpu), cache_bytes_per_token=shape.cache_bytes_per_token(2 if on_gpu else 4),
        gpus=tuple(_verdict(card, _process(parts, card.name, True)) for card in cards),
        notes=tuple(_notes(preset, shape, cards, parts, on_gpu)), **known, **_disk(preset, shape),
    )  # fmt: skip


def _parts(preset: Preset, shape: Shape, rows: int, on_gpu: bool) -> list[Part]:
    if preset.task != "finetune":
        return share_out(generation_parts(shape, preset, on_gpu=on_gpu), preset)
    return share_out(training_parts(shape, preset, rows, on_gpu=on_gpu), preset)


def _sum(parts: Sequence[Part]) -> int:
    return sum(part.bytes for part in parts)


def _process(parts: Sequence[Part], card: str, on_gpu: bool) -> int:
    """What the card shows for the process: the allocator's blocks and the CUDA context; on the CPU, the libraries."""
    if not on_gpu:
        return _sum(parts) + (700 << 20)
    logits = sum(part.bytes for part in parts if part.name == "logits")
    rest = sum(part.bytes for part in parts if part.name in ("activations", "working set", "cache"))
    context = _LARGE_CONTEXT if any(name in card for name in _LARGE_CARDS) else _CONTEXT
    return int(_sum(parts) + _KEPT_OF_LOGITS * logits + _KEPT_OF_REST * rest) + context


def _cards(preset: Preset, gpus: Sequence[HardwareGpu] | None) -> list[HardwareGpu]:
    """The cards the preset may use."""
    if preset.gpu_split.gpus == "none":
        return []
    if gpus is None:
        from llmtui.core.hardware.nvml import NvmlReader

        gpus = NvmlReader().sample(())[0]
    wanted = preset.gpu_split.gpus
    return [card for card in gpus if wanted == "auto" or card.index in wanted or card.uuid in wanted]


def _verdict(card: HardwareGpu, needed: int | None) -> GpuVerdict:
    free = card.total - card.used if card.total is not None and card.used is not None else None
    verdict: Verdict = "unknown"
    if needed is not None and free is not None and card.total is not None:
        room = free - int(_RESERVE * card.total)
        verdict = "fits" if needed <= room else "tight" if needed <= free else "does not fit"
    return GpuVerdict(card.index, card.name, card.total, free, verdict, needed)


def _work(preset: Preset, base_folder: Path) -> dict[str, Any]:
    """Rows, steps and the effective batch, as the Trainer counts them."""
    training = preset.training
    batch = training.per_device_train_batch_size * training.gradient_accumulation_steps * processes(preset)
    rows = train_rows(preset, base_folder)
    per_epoch = math.ceil(rows / batch) if rows else None
    total = math.ceil(training.num_train_epochs * per_epoch) if per_epoch else None
    if preset.task != "finetune":
        return {"effective_batch": 0}
    total = training.max_steps or total
    return {"effective_batch": batch, "rows": rows, "steps_per_epoch": per_epoch, "total_steps": total}


def processes(preset: Preset) -> int:
    """Ranks: said, or one per named card for the strategies that use several."""
    split = preset.gpu_split
    several = split.strategy in ("ddp", "zero2", "zero3", "fsdp") and isinstance(split.gpus, list)
    return split.processes or (len(split.gpus) if several else 1)


def _disk(preset: Preset, shape: Shape) -> dict[str, Any]:
    """A checkpoint holds what is trained in float32 and AdamW's two moments; one more exists while it is written."""
    if preset.task != "finetune":
        return {}
    trained = trainable_parameters(shape, preset)
    one, limit = 12 * trained, preset.checkpoints.save_total_limit
    most = limit + 1 + (1 if preset.checkpoints.result == "best" else 0)
    try:
        free: int | None = shutil.disk_usage(_existing(home_path())).free
    except OSError:
        free = None
    return {"trainable": trained, "checkpoint_bytes": one, "result_bytes": 4 * trained,
            "disk_bytes": one * most + 4 * trained, "disk_free": free}  # fmt: skip


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _notes(
    preset: Preset, shape: Shape, cards: Sequence[HardwareGpu], parts: Sequence[Part], on_gpu: bool
) -> list[str]:
    notes = []
    if preset.task == "finetune":
        size, length = preset.training.per_device_train_batch_size, longest(shape, preset)
        rows = f"{size} {'row' if size == 1 else 'rows'}"
        notes.append(f"memory is that of a micro-batch of {rows} of {length} tokens, the longest there can be")
        if length < preset.dataset.max_length:
            notes.append(f"dataset.max_length {preset.dataset.max_length} is more than the model's {length} positions")
        if smaller := _smaller_batch(preset, shape, cards, parts):
            notes.append(smaller)
    if not on_gpu:
        notes.append("on the CPU: this is the machine's memory, not a card's")
    if preset.model.trust_remote_code:
        notes.append("trust_remote_code: Python code that comes with the model will run")
    return notes


def _smaller_batch(preset: Preset, shape: Shape, cards: Sequence[HardwareGpu], parts: Sequence[Part]) -> str:
    """What auto_batch_size would come down to on the roomiest card, when the whole micro-batch does not fit."""
    known = [c for c in cards if c.total is not None and c.used is not None]
    if not known or not preset.training.auto_batch_size:
        return ""
    card = max(known, key=lambda c: (c.total or 0) - (c.used or 0))
    free, rows = (card.total or 0) - (card.used or 0), preset.training.per_device_train_batch_size
    if _process(parts, card.name, True) <= free:
        return ""
    while rows > 1:
        rows //= 2
        if _process(_parts(preset, shape, rows, True), card.name, True) <= free:
            return (
                f"auto_batch_size would take micro-batches of {rows} on GPU {card.index}, with the same effective batch"
            )
    return "not even one row fits: quantise the base, set gradient_checkpointing, or shorten dataset.max_length"
