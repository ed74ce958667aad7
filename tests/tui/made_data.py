"""A little real data, prepared with a tiny tokenizer as a run's is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llmtui.core.data import prepare
from llmtui.core.data.preview import Preview
from llmtui.core.data.statistics import statistics
from llmtui.core.preset import parse_preset
from llmtui.tui.actions import DataFound

HOSTILE_ANSWER = "\x1b[31mred\u2028[@click=app.quit]q[/] \u202eback {+no mark+} <<none>> 👩‍👩‍👧"


def island_rows() -> list[dict[str, Any]]:
    """Fifty rows: short and long ones, hostile ones, and some that cannot be used."""
    rows = [{"instruction": f"Where does number {n} live?", "output": f"In house {n},\nby the sea."} for n in range(44)]
    rows += [{"instruction": "質問に答えて。", "output": "島の灯台です。" * n} for n in (1, 60)]
    rows += [{"instruction": "Say [red]it[/].", "output": HOSTILE_ANSWER}, {"instruction": "Nothing?", "output": ""}]
    rows += [{"instruction": "Go on.", "output": "the quick brown fox and the lazy dog, " * n} for n in (3, 30)]
    return rows


def byte_tokenizer() -> Any:
    """A token for each byte: the counts are the same whatever library counts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2 + len(alphabet), special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(["a"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")


def found(folder: Path, rows: list[dict[str, Any]], dataset: str = "") -> DataFound:
    """What the Data screen gets of these rows."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    more = dataset or "template: alpaca, train_on: response, max_length: 400, on_long: cut, val_size: 8"
    text = (
        "model: {name_or_path: a/b}\n"
        f"dataset: {{name_or_path: rows.jsonl, {more}}}\n"
        "training: {per_device_train_batch_size: 4, train_sampling_strategy: group_by_length}\n"
    )
    preset = parse_preset(text).preset
    data = prepare(preset, byte_tokenizer(), base_folder=folder, max_positions=None, on_progress=lambda *_: None)
    return DataFound(statistics(data, preset), Preview(data), tuple(data.warnings))
