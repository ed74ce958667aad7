"""The published shape with random weights, rows of the published lengths: speed and memory do not depend on them."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
FOLDER = Path("/tmp/llmtui-bench")
MODEL = FOLDER / "opencalm-7b-shape"
ROWS = FOLDER / "rows.jsonl"


def make_model() -> Path:
    """OpenCALM-7B's shape (GPT-NeoX, 32 layers × 4096, vocabulary 52 096), bfloat16, with the demo's tokenizer."""
    if (MODEL / "config.json").exists():
        return MODEL
    import torch
    from transformers import AutoModelForCausalLM, GPTNeoXConfig

    config = GPTNeoXConfig(
        vocab_size=52096, hidden_size=4096, num_hidden_layers=32, num_attention_heads=32, intermediate_size=16384,
        rotary_pct=1.0, use_parallel_residual=False, max_position_embeddings=2048, tie_word_embeddings=False,
        bos_token_id=0, eos_token_id=0, pad_token_id=1,
    )  # fmt: skip
    torch.set_default_dtype(torch.bfloat16)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    model = AutoModelForCausalLM.from_config(config)
    torch.set_default_device("cpu")
    torch.set_default_dtype(torch.float32)
    FOLDER.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(MODEL, max_shard_size="4GB")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        source = REPOSITORY / "presets" / "demo" / "model" / name
        if source.exists():
            shutil.copy(source, MODEL / name)
    return MODEL


def make_rows(count: int = 2400, seed: int = 0) -> Path:
    """Instruction rows whose token lengths follow the published data's (log-normal, mean about 139, cut at 256)."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(REPOSITORY / "presets" / "demo" / "model")
    source = REPOSITORY / "presets" / "demo" / "data" / "dolly-demo.jsonl"
    sentences = [json.loads(line)["output"] for line in source.read_text("utf-8").splitlines()]
    chance = random.Random(seed)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ROWS.open("w", encoding="utf-8") as file:
        for _ in range(count):
            wanted = min(250, max(24, chance.lognormvariate(4.85, 0.55))) - 30  # 30: the prompt around it
            words = [chance.choice(sentences)]
            while len(tokenizer(" ".join(words))["input_ids"]) < wanted:
                words.append(chance.choice(sentences))
            row = {"instruction": chance.choice(sentences), "input": "", "output": " ".join(words)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return ROWS


def token_rows(preset: Any, folder: Path) -> list[list[int]]:
    """The rows as llmtui tokenises them, for the bare script: both train on the same tokens."""
    from transformers import AutoTokenizer

    from llmtui.core.data import prepare

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    prepared = prepare(preset, tokenizer, base_folder=folder, max_positions=2048, on_progress=lambda *_: None)
    return [list(prepared.train[i]["input_ids"]) for i in range(len(prepared.train))]
