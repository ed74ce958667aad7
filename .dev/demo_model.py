"""The demo's tokenizer, trained on the demo's own rows, and the config its model is initialised from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"
PADDING = "<|padding|>"
VOCABULARY_SIZE = 1536
MAX_POSITIONS = 512

# The constant parts of the Alpaca prompt stand in every row: as single tokens they cost next to nothing.
# They are plain text, not special tokens, so they survive decoding with skip_special_tokens.
PROMPT_PARTS = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request."
    "\n\n### Instruction:\n",
    "Below is an instruction that describes a task, paired with an input that provides further context."
    " Write a response that appropriately completes the request.\n\n### Instruction:\n",
    "\n\n### Input:\n",
    "\n\n### Response:\n",
)

# Words of English with their leading space, and runs of one Japanese script: a name in katakana
# never melts into the particle after it. Everything else (digits one by one) falls to the last branches.
WORDS = Regex(
    r"'s|\p{Katakana}[\p{Katakana}ー]*|\p{Hiragana}+|[\p{Han}々]+| ?\p{Latin}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+|\p{L}+"
)

CONFIG = {
    "architectures": ["GPTNeoXForCausalLM"],
    "model_type": "gpt_neox",
    "llmtui_initialise_from_config": True,
    "vocab_size": VOCABULARY_SIZE,
    "hidden_size": 320,
    "intermediate_size": 1280,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "max_position_embeddings": MAX_POSITIONS,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
    "hidden_act": "gelu",
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-05,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "use_parallel_residual": True,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 1,
}

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": MAX_POSITIONS,
    "bos_token": END_OF_TEXT,
    "eos_token": END_OF_TEXT,
    "pad_token": PADDING,
    "clean_up_tokenization_spaces": False,
}


def texts(data: Path) -> Iterator[str]:
    for name in ("dolly-demo.jsonl", "dolly-demo-more.jsonl"):
        for line in (data / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield from (row["instruction"], row["input"], row["output"])
    yield from PROMPT_PARTS


def tokenizer(data: Path) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(WORDS, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(PROMPT_PARTS),
        special_tokens=[END_OF_TEXT, PADDING],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts(data), trainer)
    made.add_tokens([AddedToken(part, normalized=False, special=False) for part in PROMPT_PARTS])
    return made


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def make_model(folder: Path) -> None:
    """`folder`/model from the rows in `folder`/data."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    write_json(model / "config.json", CONFIG)
    write_json(model / "tokenizer_config.json", TOKENIZER_CONFIG)
    tokenizer(folder / "data").save(str(model / "tokenizer.json"))
