"""VRAM by part, disk and steps, from a preset and a config.

Activations follow the layer-wise accounting of Korthikanti et al. ("Reducing Activation Recomputation in Large
Transformer Models", 2022), in the form fitted for LoRA: per layer and token h·(12 or, gated, 3·f/h + 8) numbers without
checkpointing, one hidden state per layer with it, plus one layer's working set; logits cost about 3.5 copies in float32
(the loss's own cast, log-softmax and their gradients). Expect ±15 % before a first measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from llmtui.core.forecast.shape import Shape, find_config, shape_of
from llmtui.core.preset import Preset
from llmtui.core.runs.events import HardwareGpu

_LOGIT_COPIES: Final = 3.5
_CONTEXT_BYTES: Final = 600 << 20  # CUDA context and cuBLAS workspaces, measured between 450 and 1 100 MiB
_RESERVE: Final = 0.06  # of the card, for fragmentation
Verdict = Literal["fits", "tight", "does not fit", "unknown"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a sum, bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class GpuVerdict:
    """Whether it fits one card."""

    index: int
    name: str
    total: int | None
    free: int | None
    verdict: Verdict


@dataclass(frozen=True)
class Forecast:
    """What a preset will take, before anything loads. All sizes are estimates; None is unknown."""

    source: str
    parameters: int | None = None
    trainable: int | None = None
    parts: tuple[Part, ...] = ()
    allocated: int | None = None
    process: int | None = None
    cache_bytes_per_token: int | None = None
    checkpoint_bytes: int | None = None
    disk_bytes: int | None = None
    effective_batch: int = 0
    rows: int | None = None
    steps_per_epoch: int | None = None
    total_steps: int | None = None
    gpus: tuple[GpuVerdict, ...] = ()
    notes: tuple[str, ...] = field(default=())


def forecast(preset: Preset, base_folder: Path, gpus: list[HardwareGpu] | None = None) -> Forecast:
    """Work out what a preset takes.

    Args:
        base_folder: what relative paths in the preset are relative to.
        gpus: the cards to judge against; None asks NVML.
    """
    config, source = find_config(preset.model.name_or_path, base_folder)
    shape = shape_of(config) if config else None
    training = preset.training
    batch = (
        training.per_device_train_batch_size * training.gradient_accumulation_steps * (preset.gpu_split.processes or 1)
    )
    rows = _train_rows(preset, base_folder)
    per_epoch = math.ceil(rows / batch) if rows else None
    total = training.max_steps or (math.ceil(training.num_train_epochs * per_epoch) if per_epoch else None)
    cards = _cards(gpus) if preset.gpu_split.gpus != "none" else []
    if shape is None:
        note = f"the model's shape is not known ({source}), so memory is not either"
        return Forecast(source=source, effective_batch=batch, rows=rows, steps_per_epoch=per_epoch, total_steps=total,
                        notes=(note,), gpus=tuple(_verdict(card, None) for card in cards))  # fmt: skip
    return _of_shape(preset, shape, source, cards, batch, rows, per_epoch, total)


def _of_shape(
    preset: Preset, shape: Shape, source: str, cards: list[HardwareGpu], batch: int, rows: int | None,
    per_epoch: int | None, total: int | None,
) -> Forecast:  # fmt: skip
    on_gpu = bool(cards) or preset.gpu_split.gpus == "auto"
    trainable = lora_parameters(shape, preset) if preset.lora else shape.parameters
    parts = memory_parts(shape, preset, trainable, on_gpu=on_gpu)
    allocated = sum(part.bytes for part in parts)
    process = allocated + int(0.05 * allocated) + _CONTEXT_BYTES
    checkpoint = trainable * 4 + trainable * 8  # weights as trained (float32), AdamW's two moments
    keep = preset.checkpoints.save_total_limit + (1 if preset.checkpoints.result == "best" else 0) + 1
    notes = []
    length = min(preset.dataset.max_length, shape.positions or preset.dataset.max_length)
    notes.append(f"memory is that of a batch of {preset.training.per_device_train_batch_size} rows of {length} tokens")
    return Forecast(
        source=source, parameters=shape.parameters, trainable=trainable, parts=tuple(parts), allocated=allocated,
        process=process, cache_bytes_per_token=shape.cache_bytes_per_token(2), checkpoint_bytes=checkpoint,
        disk_bytes=checkpoint * keep + trainable * 4, effective_batch=batch, rows=rows, steps_per_epoch=per_epoch,
        total_steps=total, gpus=tuple(_verdict(card, process) for card in cards), notes=tuple(notes),
    )  # fmt: skip


def lora_parameters(shape: Shape, preset: Preset) -> int:
    """r × (inputs + outputs) per adapted layer; DoRA adds one magnitude per output."""
    lora = preset.lora
    if lora is None:
        return 0
    wanted = lora.target_modules
    total = 0
    for name, inputs, outputs in shape.linears:
        if wanted == "all-linear" or name in wanted:
            total += lora.r * (inputs + outputs) + (outputs if lora.use_dora else 0)
    return total * shape.layers


def memory_parts(shape: Shape, preset: Preset, trainable: int, *, on_gpu: bool) -> list[Part]:
    """The parts of the peak of one training step."""
    width = _width(preset, on_gpu)
    quantised = preset.model.quantization
    kept = 4 if quantised != "none" else width  # k-bit preparation keeps norms, embeddings and head in float32
    per_weight = {"none": float(width), "int8": 1.0, "nf4": 0.516 if preset.model.double_quant else 0.5625}[quantised]
    scales = sum(o for _, _, o in shape.linears) * shape.layers * 4 if quantised == "int8" else 0
    weights = int(shape.matrix_parameters * per_weight) + scales
    weights += (shape.embedding_parameters + shape.small_parameters) * kept
    if preset.lora is None:
        weights = shape.parameters * (4 if preset.model.dtype == "auto" or not on_gpu else width)
    parts = [Part("weights", weights)]
    if preset.lora is not None:
        parts.append(Part("LoRA weights", trainable * 4))
    parts.append(Part("gradients", trainable * 4))
    parts.append(Part("AdamW", trainable * 8))
    activations, logits = activation_bytes(shape, preset, on_gpu=on_gpu)
    return [*parts, Part("activations", activations), Part("logits", logits)]


def activation_bytes(shape: Shape, preset: Preset, *, on_gpu: bool) -> tuple[int, int]:
    """Activations and logits of the longest batch."""
    rows, length = preset.training.per_device_train_batch_size, preset.dataset.max_length
    if shape.positions:
        length = min(length, shape.positions)
    tokens = rows * length
    width = _width(preset, on_gpu)
    hidden, inner = shape.hidden, shape.intermediate
    stream = 4 if preset.model.quantization != "none" else width  # the residual stream follows the float32 norms
    kv = 2 * shape.key_value_heads * (hidden // shape.heads)
    per_layer = tokens * ((8 * hidden + 3 * inner if shape.gated else 8 * hidden + 2 * inner) + kv) * width
    if preset.training.gradient_checkpointing:
        kept = shape.layers * tokens * hidden * stream + per_layer * (2 if stream == 4 else 1)
    else:
        kept = shape.layers * per_layer * (1 if preset.model.quantization != "int8" else 1.3)
    logits = int(_LOGIT_COPIES * tokens * shape.vocabulary * 4)
    return int(kept), logits


def _width(preset: Preset, on_gpu: bool) -> int:
    if not on_gpu or preset.model.dtype == "float32":
        return 4
    return 2


def _train_rows(preset: Preset, base_folder: Path) -> int | None:
    """Rows to train on, when the data is a small file here."""
    from llmtui.core.data.parsing import parse_file
    from llmtui.core.data.sources import is_local, local_files
    from llmtui.core.data.split import split_sizes
    from llmtui.core.errors import LlmtuiError

    name = preset.dataset.name_or_path
    if preset.task != "finetune" or not name or not is_local(name, base_folder):
        return None
    try:
        files = local_files(name, base_folder)
        if sum(path.stat().st_size for path in files) > 32 << 20:
            return None
        rows = sum(len(parse_file(path)[0]) for path in files)
        return split_sizes(min(rows, preset.dataset.limit or rows), float(preset.dataset.val_size))[0]
    except (LlmtuiError, OSError):
        return None


def _cards(gpus: list[HardwareGpu] | None) -> list[HardwareGpu]:
    if gpus is not None:
        return gpus
    from llmtui.core.hardware.nvml import NvmlReader

    return NvmlReader().sample(())[0]


def _verdict(card: HardwareGpu, needed: int | None) -> GpuVerdict:
    free = card.total - card.used if card.total is not None and card.used is not None else None
    verdict: Verdict = "unknown"
    if needed is not None and free is not None and card.total is not None:
        room = free - int(_RESERVE * card.total)
        verdict = "fits" if needed <= room else "tight" if needed <= free else "does not fit"
    return GpuVerdict(card.index, card.name, card.total, free, verdict)
