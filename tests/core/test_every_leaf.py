"""No key of the schema is ignored: a value other than the default counts, or is refused with a sentence.

The schema is walked, so that a new key must have an effect here before it can be there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from llmtui.core.errors import PresetError, Problem
from llmtui.core.home import user_presets_folder
from llmtui.core.preset import (
    Leaf,
    LoadedPreset,
    list_presets,
    parse_preset,
    resolve,
    unsupported,
    value_of,
    walk_leaves,
)  # fmt: skip
from tests.core import leaf_effects

# What the kind of a key alone does not say: a value that is valid and is not the default.
VALUES: Final = {
    "model.name_or_path": "elsewhere",
    "model.attention": "eager",
    "model.compute_dtype": "float16",
    "model.dtype": "float16",
    "dataset.name_or_path": "more.jsonl",
    "dataset.sources": "[{name_or_path: rows.jsonl}]",
    "dataset.columns": "{instruction: question}",
    "dataset.label.column": "kind",
    "dataset.label.names": "[neg, pos]",
    "dataset.limit": "9",
    "dataset.template": "chat:chatml",
    "dataset.val": "odd.jsonl",
    "dataset.clean.symbols": "?",
    "dataset.clean.min_length": "30",
    "dataset.clean.max_length": "50",
    "dataset.val_size": "5",
    "dataset.max_length": "16",
    "dataset.on_long": "split",
    "lora.target_modules": "[dense]",
    "training.learning_rate": "0.25",
    "training.sample_prompts": "[hello]",
    "training.logging_steps": "1",
    "training.early_stopping_patience": "1",
    "checkpoints.save_total_limit": "1",
    "generation.temperature": "0.5",
    "generation.top_p": "0.5",
    "gpu_split.gpus": "[1]",
    "gpu_split.max_memory": "{0: 7GiB}",
    "sweep.input_tokens": "[100]",
    "sweep.output_tokens": "[64]",
    "sweep.batch_sizes": "[8]",
    "sweep.splits": "[{strategy: layers}]",
    "limits.no_step_minutes": "0.01",
    "limits.on_hang": "stop",
    "limits.restarts": "1",
}

# What a key needs around it to mean anything: assignments for both sides of the comparison.
AROUND: Final = {
    "model.compute_dtype": ["model.quantization=nf4"],
    "model.double_quant": ["model.quantization=nf4"],
    "dataset.config": ["dataset.name_or_path=someone/rows"],
    "dataset.split": ["dataset.name_or_path=someone/rows"],
    "dataset.label.names": ["dataset.label.column=number"],
    "dataset.val": ["dataset.val_size=0"],
    "dataset.clean.nfkc": ["dataset.name_or_path=odd.jsonl"],
    "dataset.clean.control_characters": ["dataset.name_or_path=odd.jsonl"],
    "dataset.clean.duplicates": ["dataset.name_or_path=more.jsonl"],
    "dataset.on_long": ["dataset.template=text", "dataset.max_length=18"],
    "dataset.cut": ["dataset.name_or_path=plain.txt", "dataset.template=text"],
    "training.early_stopping_patience": ["training.learning_rate=0", "training.eval_steps=1"],
    "training.on_nan": ["training.learning_rate=1e35"],
    "training.train_sampling_strategy": ["training.per_device_train_batch_size=2"],
    "checkpoints.save_total_limit": ["checkpoints.save_steps=1"],
    "checkpoints.result": ["training.learning_rate=0.5", "training.eval_steps=1", "checkpoints.save_steps=1"],
    "checkpoints.metric": ["checkpoints.result=best", "training.eval_steps=2", "checkpoints.save_steps=2"],
    "checkpoints.mirror.bandwidth": ["checkpoints.mirror.path=/mnt/drive"],
    "generation.system": ["dataset.template=chat"],
    "generation.temperature": ["generation.do_sample=true"],
    "generation.top_p": ["generation.do_sample=true"],
    "generation.top_k": ["generation.do_sample=true"],
    "limits.on_hang": ["limits.no_step_minutes=0.01"],
}

TRAINED: Final = frozenset(
    {
        "dataset.padding", "training.auto_batch_size", "training.gradient_checkpointing", "training.logging_steps",
        "training.train_sampling_strategy", "training.sample_prompts", "training.early_stopping_patience",
        "training.on_nan", "checkpoints.save_total_limit", "checkpoints.result", "checkpoints.metric",
    }
)  # fmt: skip
PREPARED: Final = frozenset(
    f"dataset.{name}"
    for name in (
        "name_or_path", "sources", "columns", "limit", "shuffle", "template", "train_on", "val_size", "max_length",
        "on_long", "val", "cut", "label.column", "label.names", "clean.nfkc", "clean.lower",
        "clean.control_characters", "clean.symbols", "clean.min_length", "clean.max_length", "clean.duplicates",
    )
)  # fmt: skip
SUPERVISED: Final = {
    "limits.restarts": "dies", "checkpoints.resume": "dies",
    "limits.no_step_minutes": "hangs", "limits.on_hang": "hangs",
}  # fmt: skip

SEEN: Final[dict[tuple[str, int | None], Any]] = {}  # small training runs that several keys are compared with
LEAVES: Final = tuple(walk_leaves())
WORDS: Final = ["fish", "bird", "stone", "river", "island", "harbour", "lantern", "market", "bridge", "garden"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny untrained model (the demo's tokenizer) and rows to train it on."""
    import llmtui.presets

    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(Path(next(iter(llmtui.presets.__path__))) / "demo" / "model", folder / "tiny")
    config = json.loads((folder / "tiny" / "config.json").read_text())
    config |= {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    (folder / "tiny" / "config.json").write_text(json.dumps(config))
    shutil.copytree(folder / "tiny", folder / "elsewhere")
    rows = [
        {"instruction": f"Where is the {a}?", "question": f"{b}?", "output": " ".join([b] * (1 + i % 7))}
        for i, (a, b) in enumerate(zip(WORDS, reversed(WORDS), strict=True))
    ]
    odd = [{key: f"ＡＢＣ\0{text}" for key, text in row.items()} for row in rows]
    for name, chosen in (("rows", rows), ("more", rows * 2), ("odd", odd)):
        labels = [{"kind": ("bad", "good")[number % 2], "number": number % 2} for number in range(len(chosen))]
        lines = [{**row, "text": row["output"], **label} for row, label in zip(chosen, labels, strict=True)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "plain.txt").write_text("".join(f"{word}.\n{word}!\n\n" for word in WORDS), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(world: Path) -> Any:
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(world / "tiny")
    loaded.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    return loaded


def base(leaf: Leaf) -> list[str]:
    """The preset everything is compared with: small, with LoRA where a key is about it."""
    assignments = [
        "dataset.name_or_path=rows.jsonl", "dataset.val_size=3", "training.max_steps=3",
        "training.per_device_train_batch_size=4", "training.learning_rate=0.01", "gpu_split.gpus=none",
    ]  # fmt: skip
    if leaf.key.startswith(("lora.", "model.")):
        assignments.append("lora={}")
    if leaf.key in TRAINED:
        assignments.append("dataset.max_length=200")
    if leaf.key.startswith("gpu_split."):
        assignments.remove("gpu_split.gpus=none")
    return assignments + AROUND.get(leaf.key, [])


def another(leaf: Leaf) -> str:
    """A value other than the default, as it is written after `--set key=`."""
    if leaf.key in VALUES:
        return VALUES[leaf.key]
    if leaf.kind == "bool":
        return "false" if leaf.default else "true"
    if leaf.kind == "choice":
        return next(choice for choice in leaf.choices if choice != leaf.default)
    default = leaf.default if isinstance(leaf.default, int | float) else 0
    return {
        "int": str(int(max(leaf.minimum or 0, default)) + 1), "float": "0.75" if default != 0.75 else "0.5",
        "text": "another", "list": "[another]", "map": "{another: value}",
    }[leaf.kind]  # fmt: skip


def read(world: Path, assignments: list[str]) -> LoadedPreset:
    return parse_preset("model: {name_or_path: tiny}\n", world / "leaf.yaml", assignments)


def refusals(world: Path, leaf: Leaf, assignments: list[str]) -> list[Problem]:
    """What is said against this key, by the reader or before a start."""
    try:
        found = list(unsupported(read(world, assignments).preset))
    except PresetError as error:
        found = list(error.problems)
    return [p for p in found if p.field == leaf.key or leaf.key.startswith(f"{p.field}.")]


@pytest.fixture
def observe(
    world: Path, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Leaf, LoadedPreset], Any]:
    """What a key can be seen by; a key without a place of its own must show in the libraries' arguments."""
    monkeypatch.chdir(world)

    def look(leaf: Leaf, loaded: LoadedPreset) -> Any:
        key = leaf.key
        with pytest.MonkeyPatch.context() as patch:
            if key in ("dataset.config", "dataset.split"):
                return leaf_effects.hub_request(loaded.preset, world, tokenizer, patch)
            if key in PREPARED:
                return leaf_effects.tokens(loaded.preset, world, tokenizer)
            if key in TRAINED:
                room = 2 if key == "training.auto_batch_size" else None
                run = (resolve(loaded), room)
                if run not in SEEN:
                    SEEN[run] = leaf_effects.training(loaded, tmp_path / "runs", patch, room_for_rows=room)
                return SEEN[run]
            if key in SUPERVISED:
                return leaf_effects.supervised(loaded, tmp_path / "runs", patch, worker=SUPERVISED[key])
            if key in ("gpu_split.gpus", "gpu_split.share"):
                return leaf_effects.cards(loaded, tmp_path / "runs", patch)
            if key == "generation.system":
                return leaf_effects.answer_prompt(loaded.preset, tokenizer)
            if key == "model.name_or_path":
                from llmtui.core.worker.locate import locate

                return locate(loaded.preset.model.name_or_path, world)
            if key == "description":
                return described(loaded)
        return leaf_effects.arguments(loaded.preset)

    return look


def described(loaded: LoadedPreset) -> str:
    """What the list of presets says of it."""
    (user_presets_folder() / "leaf.yaml").write_text(resolve(loaded), encoding="utf-8")
    return next(entry.description for entry in list_presets() if entry.name == "leaf")


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.key)
def test_a_value_other_than_the_default_counts_or_is_refused(
    leaf: Leaf, world: Path, observe: Callable[[Leaf, LoadedPreset], Any]
) -> None:
    before = base(leaf)
    after = [*before, f"{leaf.key}={another(leaf)}"]
    refused = refusals(world, leaf, after)
    if refused:
        assert all(problem.problem and problem.cure for problem in refused), "a sentence and a cure"
        return
    old, new = read(world, before), read(world, after)
    assert value_of(new, leaf.key) != value_of(old, leaf.key), "the test's own value is another one"
    assert value_of(new, leaf.key) != leaf.default
    seen = observe(leaf, old)
    ignored = observe(leaf, new) == seen
    assert not ignored, f"{leaf.key} is ignored: both come to {seen}"


def test_the_same_preset_comes_to_the_same(world: Path, tmp_path: Path) -> None:
    """Otherwise a difference would prove nothing."""
    leaf = next(leaf for leaf in LEAVES if leaf.key == "training.sample_prompts")
    loaded = read(world, [*base(leaf), "training.sample_prompts=[hello]", "training.eval_steps=1"])
    seen = []
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(world)
            seen.append(leaf_effects.training(loaded, tmp_path / "runs", patch, room_for_rows=None))
    assert seen[0] == seen[1]
    assert len(seen[0][3]) > 5, "it was really trained"
