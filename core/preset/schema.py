"""The preset's schema: every key, its default, its unit and what it means.

Names follow Hugging Face's Trainer and PEFT. Models are frozen and refuse unknown keys.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from llmtui.core.preset.values import (
    count_list,
    dtype_word,
    folder_or_section,
    gpus_value,
    label_names,
    loose_float,
    loose_int,
    loose_text,
    max_memory_value,
    name_list,
    prompt_list,
    share_or_rows,
)

Int = Annotated[int, BeforeValidator(loose_int)]
Float = Annotated[float, BeforeValidator(loose_float)]
Text = Annotated[str, BeforeValidator(loose_text)]
Prompts = Annotated[list[str], BeforeValidator(prompt_list)]
Counts = Annotated[list[int], BeforeValidator(count_list)]
_LARGEST_SEED: Final = 2**32 - 1  # NumPy's
TEMPLATES: Final = ("alpaca", "rinna", "chat", "text")
CHAT_TEMPLATES: Final = ("alpaca-chat", "chatml", "gemma", "llama-3", "mistral", "rinna-chat", "vicuna", "zephyr")
"""Chat templates for tokenizers that have none, written `chat:NAME`."""


def _key(default: Any, help_: str, *, unit: str = "", **limits: Any) -> Any:
    return Field(default=default, description=help_, json_schema_extra={"unit": unit}, **limits)


class Section(BaseModel):
    """A part of the preset; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)


class ModelSection(Section):
    """Which model, and how its weights are kept."""

    name_or_path: Text = Field(
        description="Hub id, folder, run:ID (the result of a run), or a .gguf file (converted once, cached).",
        min_length=1,
    )
    revision: Text | None = _key(None, "Branch, tag or commit on the hub; pinned to a commit when the run is created.")
    quantization: Literal["none", "int8", "nf4"] = _key("none", "How the frozen base weights are kept (bitsandbytes).")
    compute_dtype: Annotated[Literal["auto", "bfloat16", "float16", "float32"], BeforeValidator(dtype_word)] = _key(
        "auto", "The type nf4 weights are multiplied in; auto = the model's dtype."
    )
    double_quant: bool = _key(True, "Quantise nf4's scales once more: 0.4 bits less per parameter.")
    dtype: Annotated[Literal["auto", "bfloat16", "float16", "float32"], BeforeValidator(dtype_word)] = _key(
        "auto", "The type of unquantised weights; auto = what this GPU is good at, float32 on the CPU."
    )
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2", "flex_attention"] = _key(
        "auto", "The attention implementation; auto = sdpa."
    )
    trust_remote_code: bool = _key(False, "Run Python code that comes with the model. It can do anything you can.")


class LabelSection(Section):
    """Classification: a column's labels are the answers."""

    column: Text = Field(description="The column that holds the labels: texts, or ids with names.", min_length=1)
    names: Annotated[dict[str, Text], BeforeValidator(label_names)] = _key(
        {}, "What ids are called: [neg, pos] (0, 1, …) or {0: neg, 1: pos}; empty = the column holds the names."
    )


class CleanSection(Section):
    """Cleaning, in this order; all off by default. Labels stay as they are."""

    nfkc: bool = _key(False, "Unicode NFKC: full-width letters become plain, half-width kana whole, ligatures letters.")
    lower: bool = _key(False, "Lower-case every text.")
    control_characters: bool = _key(False, "Remove control characters other than tabs and line breaks.")
    symbols: Text = _key("", "Remove these characters, written as one text: ■◆★.")
    min_length: Int | None = _key(None, "Drop rows shorter than this, all texts together.", unit="characters", ge=1)
    max_length: Int | None = _key(None, "Drop rows longer than this, all texts together.", unit="characters", ge=1)
    duplicates: bool = _key(False, "Drop rows equal to an earlier one, after the steps above.")


class SourceSection(Section):
    """One of several sources; columns default to those of the data set."""

    name_or_path: Text = Field(description="Hub id, file or folder.", min_length=1)
    config: Text | None = _key(None, "The hub set's configuration.")
    split: Text = _key("train", "The hub set's split to train on.")
    columns: dict[str, Text] = _key({}, "Which column is which.")
    limit: Int | None = _key(None, "Use at most this many rows of it.", unit="rows", ge=1)


class DatasetSection(Section):
    """Which rows, and how they become tokens."""

    name_or_path: Text | None = _key(None, "Hub id, file (json, jsonl, csv, tsv, parquet, txt, also .gz) or folder.")
    sources: list[SourceSection] = _key(
        [], "More sources, read after name_or_path: [{name_or_path: more.jsonl, limit: 100}]; shuffle mixes them."
    )
    config: Text | None = _key(None, "The hub set's configuration.")
    split: Text = _key("train", "The hub set's split to train on.")
    columns: dict[str, Text] = _key({}, "Which column is which: {instruction: question, output: answer}.")
    label: LabelSection | None = _key(None, "Classification: the label column and its names.")
    limit: Int | None = _key(None, "Use at most this many rows.", unit="rows", ge=1)
    shuffle: bool = _key(False, "Shuffle the rows (with the seed) before limiting and splitting.")
    cut: Literal["line", "paragraph", "file"] = _key(
        "line", "What a row of a .txt file is: a line, a paragraph (blank lines between them), or the whole file."
    )
    template: Text = _key(
        "alpaca", "How a row becomes text: alpaca, rinna, chat, chat:NAME, text, or a jinja file of your own."
    )
    train_on: Literal["everything", "response"] = _key("everything", "Which tokens count in the loss.")
    val: Text | None = _key(None, "The hub set's split, or a file or folder, to evaluate on instead of val_size.")
    val_size: Annotated[int | float, BeforeValidator(share_or_rows)] = _key(
        0, "Rows held out for evaluation: a number of rows, or a share such as 0.2; 0 = none.", unit="rows or share"
    )
    max_length: Int = _key(1024, "Longest row; on_long says what happens to longer ones.", unit="tokens", ge=2)
    on_long: Literal["cut", "drop", "split"] = _key("cut", "What to do with rows longer than max_length.")
    padding: Literal["longest", "max_length"] = _key("longest", "Pad a batch to its longest row or to max_length.")
    clean: CleanSection = _key(CleanSection(), "Cleaning steps, all off by default.")


class LoraSection(Section):
    """Low-rank adapters (PEFT). Without this section all weights are trained."""

    r: Int = _key(8, "Rank of the update matrices.", ge=1)
    lora_alpha: Float = _key(8.0, "Scale: the update counts alpha / r.", gt=0)
    lora_dropout: Float = _key(0.0, "Dropout on the adapter's input.", ge=0, lt=1)
    target_modules: Annotated[list[str] | Literal["all-linear"], BeforeValidator(name_list)] = _key(
        "all-linear", "Names of the linear layers that get an adapter, or all-linear."
    )
    bias: Literal["none", "all", "lora_only"] = _key("none", "Which biases are trained too.")
    use_rslora: bool = _key(False, "Scale by alpha / √r (rank-stabilised LoRA).")
    use_dora: bool = _key(False, "Train magnitude and direction apart (DoRA).")


class TrainingSection(Section):
    """The Trainer's settings."""

    num_train_epochs: Float = _key(3.0, "Times through the training rows.", unit="epochs", gt=0)
    max_steps: Int | None = _key(None, "Stop after this many optimizer steps; wins over epochs.", unit="steps", ge=1)
    learning_rate: Float = _key(5e-5, "Peak learning rate.", ge=0)
    lr_scheduler_type: Literal[
        "linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup",
        "inverse_sqrt",
    ] = _key("linear", "How the learning rate falls after the warm-up.")  # fmt: skip
    warmup_steps: Float = _key(
        0.0, "Steps of rising learning rate; a share of all steps when below 1.", unit="steps", ge=0
    )
    weight_decay: Float = _key(0.0, "AdamW's weight decay.", ge=0)
    max_grad_norm: Float = _key(1.0, "Gradients are clipped to this norm.", ge=0)
    per_device_train_batch_size: Int = _key(8, "Rows per device and micro-step.", unit="rows", ge=1)
    per_device_eval_batch_size: Int = _key(8, "Rows per device when evaluating.", unit="rows", ge=1)
    gradient_accumulation_steps: Int = _key(1, "Micro-steps per optimizer step.", ge=1)
    auto_batch_size: bool = _key(True, "Out of memory: smaller micro-batches, the same effective batch.")
    gradient_checkpointing: bool = _key(
        False, "Recompute activations in the backward pass: less memory, about a third slower."
    )
    packing: bool = _key(False, "Several rows in one sequence.")
    train_sampling_strategy: Literal["random", "sequential", "group_by_length"] = _key("random", "The order of rows.")
    recipe: Literal["trainer", "fast"] = _key("trainer", "How a step is run.")
    eval_steps: Int | None = _key(None, "Evaluate every so many steps; none = only at the end.", unit="steps", ge=1)
    logging_steps: Int = _key(
        20, "A line in output.log every so many steps (Trainer's own default is 500).", unit="steps", ge=1
    )
    sample_prompts: Prompts = _key([], "Prompts answered before training, at every eval and at the end.")
    early_stopping_patience: Int | None = _key(
        None, "Stop after this many evals without a better metric.", unit="evals", ge=1
    )
    on_nan: Literal["stop", "continue"] = _key("stop", "What to do when the loss is not finite.")
    seed: Int = _key(42, "Seed of initialisation, order, split and dropout.", ge=0, le=_LARGEST_SEED)


class MirrorSection(Section):
    """A second place for finished checkpoints."""

    path: Text = Field(description="Folder, such as a mounted drive.")
    bandwidth: Text | None = _key(None, "At most this much a second, such as 20MB.")


class CheckpointsSection(Section):
    """When to save, what to keep, what to go on from."""

    save_steps: Int = _key(500, "Save every so many steps.", unit="steps", ge=1)
    save_total_limit: Int = _key(3, "How many checkpoints to keep.", unit="checkpoints", ge=1)
    result: Literal["last", "best"] = _key("last", "Whether the result is the last or the best checkpoint.")
    metric: Literal["loss", "accuracy"] = _key("loss", "What best means: lowest eval loss or highest token accuracy.")
    on_full: Literal["continue", "stop"] = _key("continue", "What to do when a checkpoint cannot be written.")
    mirror: Annotated[MirrorSection | None, BeforeValidator(folder_or_section)] = _key(
        None, "Copy finished checkpoints to a second place."
    )
    resume: Literal["auto", "never"] = _key("auto", "Restart from the last good checkpoint after a crash, or not.")


class GenerationSection(Section):
    """How answers are generated (transformers' names)."""

    prompts: Prompts = _key([], "Prompts of task: generate.")
    system: Text | None = _key(None, "System message, where the template has one.")
    max_new_tokens: Int = _key(64, "Longest answer.", unit="tokens", ge=1)
    min_new_tokens: Int = _key(0, "Shortest answer.", unit="tokens", ge=0)
    do_sample: bool = _key(False, "Draw from the distribution; otherwise the likeliest token (greedy).")
    temperature: Float = _key(1.0, "Flattens the distribution; 0 = greedy.", ge=0)
    top_p: Float = _key(1.0, "Draw from the likeliest tokens of this mass.", gt=0, le=1)
    top_k: Int = _key(0, "Draw from this many likeliest tokens; 0 = all.", ge=0)
    repetition_penalty: Float = _key(1.0, "Above 1 repeats less.", gt=0)
    num_beams: Int = _key(1, "Beams searched.", ge=1)
    batch_size: Int = _key(8, "Prompts at once.", unit="prompts", ge=1)


class SweepSection(Section):
    """The grid of task: sweep."""

    input_tokens: Counts = _key([], "Input lengths.", unit="tokens")
    output_tokens: Counts = _key([], "Output lengths.", unit="tokens")
    batch_sizes: Counts = _key([1], "Batch sizes.")
    quantizations: list[Text] = _key([], "Quantisations; empty = the model's.")
    splits: list[dict[str, Any]] = _key([], "GPU splits; empty = gpu_split.")
    repeats: Int = _key(3, "Measurements per cell.", ge=1)
    isolation: Literal["none", "process"] = _key("none", "A fresh process per cell, or one for all.")
    text: Text | None = _key(None, "A file whose first tokens are the input; none = a bundled text.")


class GpuSplitSection(Section):
    """Which cards, and how the work is spread over them."""

    gpus: Annotated[Literal["auto", "none"] | list[int | str], BeforeValidator(gpus_value)] = _key(
        "auto", "auto, none (CPU), or a list of indices (PCI order, as nvidia-smi) or UUIDs."
    )
    processes: Int | None = _key(None, "Ranks; none = one per GPU used, 1 on the CPU.", ge=1)
    strategy: Literal["single", "layers", "ddp", "zero2", "zero3", "fsdp"] = _key("single", "How the work is split.")
    max_memory: Annotated[dict[int | str, int], BeforeValidator(max_memory_value)] = _key(
        {}, "For layers: bytes per card, such as {0: 7GiB, 1: 7GiB}.", unit="bytes"
    )
    deepspeed_config: Text | None = _key(None, "A DeepSpeed file to merge.")
    keep: Literal["effective", "per_device"] = _key("effective", "Which batch stays when the number of GPUs changes.")
    share: bool = _key(False, "Do not wait in the queue: share the card with what runs there.")
    nodes: Int = _key(1, "Machines.", ge=1)


class LimitsSection(Section):
    """When to step in."""

    no_step_minutes: Float | None = _key(None, "No step for so long is a hang; none = never.", unit="minutes", gt=0)
    on_hang: Literal["wait", "stop", "restart"] = _key("wait", "What to do about a hang.")
    restarts: Int = _key(3, "At most so many restarts after crashes.", ge=0)


class Preset(Section):
    """A whole preset."""

    description: Text = _key("", "What it is, and where the recipe is from.")
    task: Literal["finetune", "generate", "sweep"] = _key("finetune", "What the run does.")
    model: ModelSection
    dataset: DatasetSection = _key(DatasetSection(), "The data.")
    lora: LoraSection | None = _key(None, "LoRA adapters; absent = full fine-tuning.")
    training: TrainingSection = _key(TrainingSection(), "Training.")
    checkpoints: CheckpointsSection = _key(CheckpointsSection(), "Checkpoints.")
    generation: GenerationSection = _key(GenerationSection(), "Generation.")
    sweep: SweepSection | None = _key(None, "The sweep's grid.")
    gpu_split: GpuSplitSection = _key(GpuSplitSection(), "Cards.")
    limits: LimitsSection = _key(LimitsSection(), "Limits.")
    notify: Text | None = _key(None, "A command to run when the run ends or needs you.")
