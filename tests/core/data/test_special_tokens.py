"""Begin and end tokens exactly once, whatever tokenizer, template and data add; ends are always learned."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from llmtui.core.data.batches import collate
from llmtui.core.data.masks import exact_offsets, trained_tokens
from llmtui.core.data.prompts import prompt_ids
from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokenizer_notes import tokenizer_notes
from llmtui.core.data.tokens import Counts, Piece, encode_batch, finish_rows, special_tokens, turn_enders
from llmtui.core.errors import DataError

KINDS = ["bpe", "bpe_with_begin", "bpe_with_end", "rinna", "sentencepiece_tokenizer"]


def row(tokenizer: Any, text: str, *, spans: tuple[tuple[int, int], ...] | None = None, max_length: int = 500) -> Piece:
    item = Rendered(text, spans if spans is not None else ((0, len(text)),), append_eos=True)
    (encoded,) = encode_batch(tokenizer, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(tokenizer), max_length, "cut", Counts())
    return piece


class Slow:
    """A tokenizer without offsets: words of up to three letters, a begin token by itself, an end token if asked."""

    bos_token_id, eos_token_id, pad_token_id, unk_token_id = 1, 2, None, None
    bos_token, eos_token = "<s>", "</s>"
    is_fast = False
    all_special_ids = (1, 2)

    def __init__(self, adds_end: bool = False) -> None:
        self.adds_end = adds_end

    def _ids(self, text: str, add_special_tokens: bool) -> list[int]:
        ids = []
        for word in text.split(" "):
            ids += [1000 + sum(ord(c) * 131**n for n, c in enumerate(word[i : i + 3])) for i in range(0, len(word), 3)]
        return [1, *ids, *([2] if self.adds_end else [])] if add_special_tokens else ids

    def __call__(self, text: str | list[str], add_special_tokens: bool = True, verbose: bool = True) -> dict[str, Any]:
        if isinstance(text, str):
            return {"input_ids": self._ids(text, add_special_tokens)}
        return {"input_ids": [self._ids(one, add_special_tokens) for one in text]}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "text", ["plain", "<s>begun", "ended</s>", "<s>both</s>", "<s><s>twice</s></s>", "</s>", "two\nlines", " blank "]
)
def test_each_stands_once_at_its_place(name: str, text: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(name)
    special = special_tokens(tokenizer)
    ids = row(tokenizer, f"{text}").ids if text != "</s>" else row(tokenizer, "a</s>").ids
    assert ids[-1] == special.end
    assert ids[-2] != special.end
    if special.begin:
        assert tuple(ids[: len(special.begin)]) == special.begin
        assert ids[1] not in special.begin


@pytest.mark.parametrize(
    ("name", "begin"), [("bpe", ()), ("bpe_with_begin", (0,)), ("bpe_with_end", (0,)), ("rinna", ())]
)
def test_what_a_tokenizer_adds_by_itself_is_known(
    name: str, begin: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(name)
    special = special_tokens(tokenizer)
    assert (special.begin, special.end) == (begin, tokenizer.eos_token_id)
    assert turn_enders(tokenizer) == ["</s>"]


def test_a_begin_of_two_tokens_is_put_whole(bpe: Any) -> None:
    from tokenizers import processors

    tokenizer = copy.deepcopy(bpe)
    tokenizer.add_special_tokens({"additional_special_tokens": ["[gMASK]", "<sop>"]})
    first, second = tokenizer.convert_tokens_to_ids(["[gMASK]", "<sop>"])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[gMASK] <sop> $A", special_tokens=[("[gMASK]", first), ("<sop>", second)]
    )
    assert special_tokens(tokenizer).begin == (first, second)
    assert row(tokenizer, "hi").ids[:2] == row(tokenizer, "[gMASK]<sop>hi").ids[:2] == [first, second]
    assert row(tokenizer, "[gMASK]<sop>hi").ids.count(first) == 1


def test_a_tokenizer_whose_begin_is_its_end_begins_with_nothing(bpe: Any) -> None:
    tokenizer = copy.deepcopy(bpe)
    tokenizer.bos_token = "</s>"  # as GPT-NeoX and GPT-2 have it
    assert row(tokenizer, "hi").ids[-1] == tokenizer.eos_token_id
    assert row(tokenizer, "hi").ids.count(tokenizer.eos_token_id) == 1


def test_an_end_token_that_the_data_writes_inside_a_text_is_counted(bpe: Any) -> None:
    counts = Counts()
    for text in ("fine", "fine</s>", "not</s>so fine", "</s>nor this"):
        item = Rendered(text, ((0, len(text)),), append_eos=True)
        finish_rows(*encode_batch(bpe, [item], True)[0], item, special_tokens(bpe), 100, "cut", counts)
    assert counts.ends_inside == 2
    assert counts.sentences(100) == ["2 rows have the end token inside their text; a model learns to stop there"]


def test_a_tokenizer_without_an_end_token_says_so(bpe: Any) -> None:
    tokenizer = copy.deepcopy(bpe)
    tokenizer.eos_token = None
    piece = row(tokenizer, "hello there")
    assert not piece.ended
    assert tokenizer.decode(piece.ids) == "hello there"
    assert "no end token" in tokenizer_notes("alpaca", tokenizer)[0]


@pytest.mark.parametrize("pad", ["eos", "unk", "own"])
def test_a_pad_token_hides_no_end_whatever_it_is(bpe: Any, pad: str) -> None:  # B1
    tokenizer = copy.deepcopy(bpe)
    pad_id = {"eos": tokenizer.eos_token_id, "unk": 5, "own": 399}[pad]
    pieces = [row(tokenizer, text) for text in ("a", "a longer text", "the longest text of all of them")]
    features = [
        {"input_ids": p.ids, "labels": [t if f else -100 for t, f in zip(p.ids, p.trained, strict=True)]}
        for p in pieces
    ]
    batch = collate(features, pad_id)
    for labels, mask in zip(batch["labels"], batch["attention_mask"], strict=True):
        assert [label for label in labels if label >= 0][-1] == tokenizer.eos_token_id
        assert all(label == -100 for label, real in zip(labels, mask, strict=True) if not real)
    padded = collate(features, pad_id, pad_to=64)
    assert {len(ids) for ids in padded["input_ids"]} == {64}


def test_a_short_row_ends_and_a_long_one_is_not_made_to(bpe: Any) -> None:  # B2
    short, long = row(bpe, "ab", max_length=8), row(bpe, "word " * 40, max_length=8)
    assert (short.ids[-1], short.ended) == (bpe.eos_token_id, True)
    assert (len(long.ids), long.ended, bpe.eos_token_id in long.ids) == (8, False, False)


@pytest.mark.parametrize("adds_end", [False, True])
def test_a_tokenizer_without_offsets_has_the_same_borders(adds_end: bool) -> None:
    tokenizer = Slow(adds_end)
    piece = row(tokenizer, "say it: abcdef now", spans=((8, 14),))
    assert piece.ids[0] == 1
    assert [piece.ids.count(1), piece.ids.count(2)] == [1, 1]
    words = tokenizer("say it: abcdef now", add_special_tokens=False)["input_ids"]
    answer = tokenizer("abcdef", add_special_tokens=False)["input_ids"]
    assert piece.ids[1:-1] == words
    assert [t for t, f in zip(piece.ids, piece.trained, strict=True) if f] == [*answer, 2]


@pytest.mark.parametrize("border", [(9, 14), (8, 13), (9, 13)])
def test_a_token_over_a_border_is_trained_with_or_without_offsets(border: tuple[int, int]) -> None:
    piece = row(Slow(), "say it: abcdef now", spans=(border,))
    assert sum(piece.trained) == 3, "both halves of the word, and the end"
    assert trained_tokens([(0, 3), (3, 6), (6, 9)], [(2, 4)]) == [True, True, False]


@pytest.mark.parametrize("template", ["alpaca", "rinna", "text", "chat:chatml", "chat:vicuna"])
def test_a_real_tokenizer_without_offsets_learns_the_answer_and_its_end(template: str) -> None:
    from transformers import ByT5Tokenizer

    tokenizer = ByT5Tokenizer(extra_ids=0)
    assert not tokenizer.is_fast
    item = renderer(template, tokenizer)(Example("r", "質 q", "", "答 a"))
    (encoded,) = encode_batch(tokenizer, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(tokenizer), 1000, "cut", Counts())
    learned = tokenizer.decode([t for t, f in zip(piece.ids, piece.trained, strict=True) if f])
    assert learned == "".join(item.text[a:b] for a, b in item.spans).removesuffix("</s>") + "</s>"
    assert (piece.ids.count(tokenizer.eos_token_id), piece.ended) == (1, True)
    assert [encoded[0]] == [ids for ids, _ in encode_batch(tokenizer, [item], masked=False)]


def test_bytes_of_unknown_characters_lie_at_their_own() -> None:
    byte_of = {10: 0x0A, 11: 0xE5, 12: 0xAD, 13: 0x97}
    run = [(3, 5)] * 4  # what a unigram model gives for "\n字"
    assert exact_offsets([10, 11, 12, 13], run, byte_of) == [(3, 4), (4, 5), (4, 5), (4, 5)]
    assert exact_offsets([11, 12], [(3, 5)] * 2, byte_of) == [(3, 5)] * 2, "half a character stays as it is"


def test_a_newline_before_an_answer_of_unknown_characters_is_not_learned(rinna: Any) -> None:
    item = renderer("alpaca", rinna)(Example("r", "q", "", "緑😀"))
    (encoded,) = encode_batch(rinna, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(rinna), 500, "cut", Counts())
    learned = [t for t, f in zip(piece.ids, piece.trained, strict=True) if f]
    assert rinna.decode(learned) == "緑😀</s>"


def test_newlines_that_a_tokenizer_drops_are_said_or_marked(sentencepiece_tokenizer: Any, bpe: Any) -> None:  # B6
    (note,) = tokenizer_notes("alpaca", sentencepiece_tokenizer)
    assert "drops newlines" in note
    assert "rinna" in note
    assert tokenizer_notes("rinna", sentencepiece_tokenizer) == []
    assert tokenizer_notes("alpaca", bpe) == []


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_prompt_is_never_empty_and_has_no_end(bpe: Any, bpe_with_end: Any, text: str) -> None:
    assert prompt_ids(bpe_with_end, text)[0] == bpe_with_end.bos_token_id
    assert bpe_with_end.eos_token_id not in prompt_ids(bpe_with_end, text)
    assert len(prompt_ids(bpe, text)) >= 1


def test_a_text_the_tokenizer_refuses_is_named_with_its_row(bpe: Any) -> None:
    rows = [Rendered("fine", ((0, 4),), True, "a.jsonl, row 1"), Rendered("\ud800", ((0, 1),), True, "a.jsonl, row 2")]
    for masked in (True, False):
        with pytest.raises(DataError) as refused:
            encode_batch(bpe, rows, masked)
        assert refused.value.place == "a.jsonl, row 2"


def test_nothing_to_encode_is_nothing(bpe: Any) -> None:
    assert encode_batch(bpe, [], masked=True) == encode_batch(bpe, [], masked=False) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_quick_way_gives_transformers_own_ids(name: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(name)
    texts = ["### 指示:<NL>質問", "<s>a</s> b", "", "  two  blanks \n", "😀 ①ｱ"]
    items = [Rendered(text, ((0, len(text)),), True) for text in texts]
    theirs = tokenizer(texts, add_special_tokens=False)["input_ids"]
    for masked in (True, False):
        assert [ids for ids, _ in encode_batch(tokenizer, items, masked)] == theirs
