"""Tokenizers that are only a sentencepiece model (`spiece.model`): what they need, and that they read as it does.

transformers 5 reads such a model with the class its settings name, and those classes fix what the model says itself:
`T5Tokenizer` takes id 2 for unknown characters (which may be the end token), puts a blank before every word and knows
no bytes. rinna's and other Japanese models are not like that (their cards say `use_fast=False`, which is ignored now).
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from llmtui.core.errors import MachineError

# Classes that say nothing of their own about text; others lower-case it or take accents away.
_PLAIN: Final = ("T5Tokenizer", "LlamaTokenizer", "PreTrainedTokenizer", "TokenizersBackend")
_UNIGRAM: Final = 1
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
_BLANK: Final = "\u2581"
_PROBES: Final = (
    "a b", "  two  blanks ", "### 指示:<NL>質問に答えて。<NL><NL>### 回答:<NL>答え", "日本語 and English\nnext line",
    "😀 ①", "The quick brown fox.", "吾輩は猫である", "[UNK] <NL>x", "\tタブ、全角　空白ＡＢＣ",
)  # fmt: skip


def sentencepiece_file(folder: Path) -> Path | None:
    """The sentencepiece model a tokenizer is made of, when the folder has no `tokenizer.json`."""
    if not folder.is_dir() or (folder / "tokenizer.json").is_file():
        return None
    names = ("spiece.model", "tokenizer.model", "sentencepiece.model", "sentencepiece.bpe.model")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def check_packages(folder: Path) -> None:
    """Refuse early what transformers would blame on tiktoken.

    Raises:
        MachineError: a package is missing that the folder's sentencepiece model is read with.
    """
    file = sentencepiece_file(folder)
    if file is None:
        return
    for module, package in (("sentencepiece", "sentencepiece"), ("google.protobuf", "protobuf")):
        try:
            there = find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            raise MachineError(f"{file.name} is read with the package {package}, which is not installed",
                               place=str(file), hint=f"pip install {package}")  # fmt: skip


def faithful(tokenizer: Any, folder: Path) -> Any:
    """The tokenizer, or one that reads texts as its sentencepiece model does where it does not.

    Only where ids are the model's own and its class has no rules of its own; a BPE model is left as it is.
    """
    file = sentencepiece_file(folder)
    plain = type(tokenizer).__name__.removesuffix("Fast") in _PLAIN
    if file is None or not plain or not getattr(tokenizer, "is_fast", False):
        return tokenizer
    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

    model = SentencePieceProcessor(model_file=str(file))
    if not _same_ids(tokenizer, model) or _agrees(tokenizer, model):
        return tokenizer
    proto = sentencepiece_model_pb2.ModelProto.FromString(file.read_bytes())
    if proto.trainer_spec.model_type != _UNIGRAM:
        return tokenizer
    mended = _wrapped(_backend(proto), proto, tokenizer)
    return mended if _agrees(mended, model) else tokenizer


def _same_ids(tokenizer: Any, model: Any) -> bool:
    ids = [
        number for number in range(model.get_piece_size()) if not (model.is_control(number) or model.is_unknown(number))
    ]
    ids = ids[:: max(1, len(ids) // 50)]
    return bool([model.id_to_piece(n) for n in ids] == tokenizer.convert_ids_to_tokens(ids))


def _agrees(tokenizer: Any, model: Any) -> bool:
    return all(_same(list(tokenizer(text, add_special_tokens=False)["input_ids"]), text, model) for text in _PROBES)


def _same(ids: list[int], text: str, model: Any) -> bool:
    """Whether these are the model's ids, or others that it thinks as likely: "###" is "#", "##" or "##", "#"."""
    expected = model.encode(text)
    if ids == expected:
        return True
    if not all(0 <= number < model.get_piece_size() for number in ids) or model.decode(ids) != model.decode(expected):
        return False
    likelihoods = [sum(map(model.get_score, numbers)) for numbers in (ids, expected)]
    return bool(abs(likelihoods[0] - likelihoods[1]) < 1e-3)


def _backend(proto: Any) -> Any:
    """A `tokenizers.Tokenizer` that does what the model's own settings say."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    normal, trained = proto.normalizer_spec, proto.trainer_spec
    vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
    made = Tokenizer(models.Unigram(vocabulary, unk_id=trained.unk_id, byte_fallback=trained.byte_fallback))
    steps: list[Any] = []
    if normal.precompiled_charsmap:
        steps.append(normalizers.Precompiled(normal.precompiled_charsmap))
    if normal.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    steps.append(normalizers.Replace(" ", _BLANK))
    if normal.add_dummy_prefix:
        steps.append(normalizers.Prepend(_BLANK))
    made.normalizer = normalizers.Sequence(steps)
    whole = sorted((p.piece for p in proto.pieces if p.type == _USER_DEFINED), key=len, reverse=True)
    if whole:
        pattern = Regex("|".join(re.escape(piece) for piece in whole))
        made.pre_tokenizer = pre_tokenizers.Split(pattern, "isolated")
    made.add_special_tokens(
        [AddedToken(p.piece, special=True, normalized=False) for p in proto.pieces if p.type == _CONTROL]
    )
    back: list[Any] = [decoders.Replace(_BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
    if normal.add_dummy_prefix:
        back.append(decoders.Strip(" ", 1, 0))
    made.decoder = decoders.Sequence(back)
    return made


def _wrapped(backend: Any, proto: Any, tokenizer: Any) -> Any:
    """The backend with what transformers knew besides the vocabulary: special tokens, limits, what is added."""
    from transformers import PreTrainedTokenizerFast

    pieces = {piece.piece for piece in proto.pieces}
    special = {name: token for name, token in tokenizer.special_tokens_map.items() if token in pieces}
    backend.post_processor = tokenizer.backend_tokenizer.post_processor
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, **special, model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side, truncation_side=tokenizer.truncation_side,
        clean_up_tokenization_spaces=False, chat_template=getattr(tokenizer, "chat_template", None),
    )  # fmt: skip
