"""Memory of one training step by part, from shapes alone.

The terms are those of Korthikanti et al. ("Reducing Activation Recomputation in Large Transformer Models", 2022, what
each operation keeps for its backward pass), written out for what PEFT, bitsandbytes and torch's autocast do to them,
and checked against the allocator on an H200 (torch 2.11, transformers 5.17, bitsandbytes 0.50; `tests/data/memory`).
Bytes per token and layer, h hidden, a attention, f intermediate size, e bytes of a computed number:

- norms keep their inputs in float32 under autocast: 8 h
- GPT-NeoX and GPT-2: fused query, key, value, rotated query and key, output: 6 e h; activation input: e f (GPT-2's
  `gelu_new` is seven elementwise operations, partly in float32: 13.25 f)
- Llama: query, repeated key and value, output: 4 e a; gate, its SiLU, up: 3 e f
- a quantised base computes in float32 between its layers (k-bit preparation): 8 h for attention, 4 f or 12 f inside
- int8 layers keep their own inputs: 4 h + 2 a + 4 h + 4 f
- LoRA keeps each adapted layer's input in e bytes, and a byte of dropout mask
- full fine-tuning keeps every linear layer's input: e per number
- gradient checkpointing keeps one hidden state per layer instead

The logits cost 12 bytes per token and entry of the vocabulary at the backward of the loss: float32 logits, log-softmax
and its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llmtui.core.forecast.shape import Shape
from llmtui.core.preset import Preset

LOGIT_BYTES: Final = 12
WORKSPACE: Final = 64 << 20  # cuBLAS, inside the allocator
_NF4: Final = 0.5  # bytes per weight; a float32 scale per 64 weights comes on top, quantised itself or not
_NF4_SCALES: Final = {False: 4 / 64, True: 1 / 64 + 4 / (64 * 256)}
_GELU_NEW: Final = 13.25
_EAGER_BYTES: Final = 5.25  # per attention weight


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a sum, bytes."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Regime:
    """How numbers are kept: `weight` bytes of unquantised weights, `computed` bytes of what layers compute,
    `stream` bytes of the hidden state between layers; `cast` says whether autocast keeps copies of weights."""

    weight: int
    computed: int
    stream: int
    cast: bool


def regime(preset: Preset, *, on_gpu: bool) -> Regime:
    """The worker's choice of types (`core.worker.precision`) as sizes."""
    quantised, full = preset.model.quantization != "none", preset.lora is None
    wide = preset.model.dtype == "float32" or (not on_gpu and preset.model.dtype == "auto")
    if wide:
        return Regime(4, 4, 4, cast=False)
    master = full and preset.model.dtype in ("auto", "float16")
    weight = 4 if master else 2
    return Regime(weight, 2, 4 if master or quantised else 2, cast=on_gpu and (master or quantised))


def trainable_parameters(shape: Shape, preset: Preset) -> int:
    """LoRA: r × (inputs + outputs) per adapted layer, with DoRA one magnitude per output, and the biases asked for."""
    lora = preset.lora
    if lora is None:
        return shape.parameters
    total = 0
    for linear in shape.linears:
        if _adapted(preset, linear.name):
            total += lora.r * (linear.inputs + linear.outputs) + (linear.outputs if lora.use_dora else 0)
            total += linear.outputs if lora.bias == "lora_only" and linear.bias else 0
        total += linear.outputs if lora.bias == "all" and linear.bias else 0
    return total * shape.layers


def _adapted(preset: Preset, name: str) -> bool:
    lora = preset.lora
    return lora is not None and (lora.target_modules == "all-linear" or name in lora.target_modules)


def weight_bytes(shape: Shape, preset: Preset, how: Regime) -> int:
    """The base model's weights as they lie on the card."""
    if preset.model.quantization == "none":
        return shape.parameters * how.weight
    # k-bit preparation turns everything that is not quantised into float32 (when training).
    other = (shape.embedding_parameters + shape.small_parameters) * (4 if preset.task == "finetune" else how.weight)
    if preset.model.quantization == "int8":
        scales = 4 * shape.layers * sum(linear.outputs for linear in shape.linears)
        return shape.matrix_parameters + scales + other
    return int(shape.matrix_parameters * (_NF4 + _NF4_SCALES[preset.model.double_quant])) + other


def training_parts(shape: Shape, preset: Preset, rows: int, *, on_gpu: bool) -> list[Part]:
    """The parts of the peak of a training step with a micro-batch of `rows` rows of the greatest length.

    Two moments compete: the backward of the loss (activations and logits, no gradients yet) and its end (gradients).
    """
    how = regime(preset, on_gpu=on_gpu)
    trained = trainable_parameters(shape, preset)
    length = longest(shape, preset)
    kept, logits = activations(shape, preset, how, rows, length), LOGIT_BYTES * rows * length * shape.vocabulary
    weights, extra = weight_bytes(shape, preset, how), _cast_copies(shape, preset, how)
    width = how.weight if preset.lora is None else 4  # LoRA's weights are float32 in any case
    parts = [Part("weights", weights)]
    if preset.lora is not None:
        parts.append(Part("LoRA", trained * width))
    parts.append(Part("AdamW", trained * 2 * width))
    gradients = trained * width
    if preset.lora is None and gradients > kept + extra + logits:
        # The end of the backward pass is the peak: all gradients, and what one layer still needs.
        layer = 2 * how.computed * shape.matrix_parameters // max(1, shape.layers)
        parts += [Part("gradients", gradients), Part("activations", layer)]
    else:
        # A LoRA's gradients are small, and an accumulated group keeps them over the loss.
        if preset.lora is not None or preset.training.gradient_accumulation_steps > 1:
            parts.append(Part("gradients", gradients))
        parts += [Part("activations", kept + extra), Part("logits", logits)]
    if on_gpu:
        parts.append(Part("workspace", WORKSPACE))
    return parts


def longest(shape: Shape, preset: Preset) -> int:
    """Tokens of the longest row."""
    return min(preset.dataset.max_length, shape.positions or preset.dataset.max_length)


def _cast_copies(shape: Shape, preset: Preset, how: Regime) -> int:
    """Weights that autocast copies and the backward pass needs: all linear ones of a float32 master, else its head."""
    if not how.cast:
        return 0
    head = shape.vocabulary * shape.hidden * how.computed
    if preset.lora is not None or preset.training.gradient_checkpointing:
        return head
    return head + shape.matrix_parameters * how.computed


def activations(shape: Shape, preset: Preset, how: Regime, rows: int, length: int) -> int:
    """What the layers keep for the backward pass."""
    tokens = rows * length
    layer = tokens * _layer_bytes(shape, preset, how)
    if preset.model.attention == "eager":
        layer += _EAGER_BYTES * shape.heads * rows * length**2
    if not preset.training.gradient_checkpointing:
        return int(layer * shape.layers)
    states = shape.layers * tokens * shape.hidden * how.stream
    end = 4.5 * tokens * shape.hidden
    logits = LOGIT_BYTES * tokens * shape.vocabulary
    # A layer that is run again has its activations and their gradients, when the logits are gone.
    return int(states + max(end, 1.3 * layer - logits))


def _layer_bytes(shape: Shape, preset: Preset, how: Regime) -> float:
    h, a, f, e = shape.hidden, shape.attention, shape.intermediate, how.computed
    quantised = preset.model.quantization != "none" and e == 2
    gated = shape.block == "llama"
    total: float = 8 * h
    if gated:
        total += 4 * e * a + (12 if quantised else 3 * e) * f
    else:
        total += (8 if quantised else 6 * e) * h
        total += _GELU_NEW * f if shape.activation == "gelu_new" else (4 if quantised else e) * f
    if shape.block == "gpt2":
        total += 2 * h  # dropout masks
    if preset.model.quantization == "int8":
        total += 8 * h + 2 * a + 4 * f
    if preset.lora is None:
        return total + (2 * h + a + f) * e + (12 * h if gated else 0)
    per_number = e + (1 if preset.lora.lora_dropout > 0 else 0)
    return total + per_number * sum(linear.inputs for linear in shape.linears if _adapted(preset, linear.name))


def generation_parts(shape: Shape, preset: Preset, *, on_gpu: bool) -> list[Part]:
    """Weights, the cache of the longest answer, and the logits of one position per row."""
    how = regime(preset, on_gpu=on_gpu)
    sweep = preset.sweep
    if preset.task == "sweep" and sweep is not None:
        tokens = max(sweep.input_tokens, default=0) + max(sweep.output_tokens, default=0)
        rows = max(sweep.batch_sizes, default=1)
    else:
        tokens, rows = preset.dataset.max_length + preset.generation.max_new_tokens, preset.generation.batch_size
    width = how.computed
    # One layer's prompt at once, and the last position's logits in float32.
    working = rows * tokens * 4 * (2 * shape.hidden + 2 * shape.intermediate) + rows * shape.vocabulary * 8
    cache = tokens * rows * shape.cache_bytes_per_token(width)
    parts = [Part("weights", weight_bytes(shape, preset, how)), Part("cache", cache), Part("working set", working)]
    return [*parts, Part("workspace", WORKSPACE)] if on_gpu else parts
