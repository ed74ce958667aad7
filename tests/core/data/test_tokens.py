"""Rows become tokens with each special token once, masks that follow the answer, and nothing invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.data import Prepared, collate, prepare
from llmtui.core.data.prompts import decode_answer, prompt_text
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.split import split_indices
from llmtui.core.data.templates import ALPACA_LONG, ALPACA_SHORT, RINNA_LONG, RINNA_SHORT, renderer
from llmtui.core.errors import DataError
from llmtui.core.preset import Preset, parse_preset

DOLLY = [
    ("日本の首都は？", "", "東京です。"),
    ("Summarise the text.", "The fox jumps.\nThe dog sleeps.", "A fox and a dog."),
    ("Name a colour.", "", "Red"),
    ("次の文を分類せよ。", "波は高い", "海"),
    ("Braces {input} {instruction}?", "{output}", "They stay: {input}"),
]


def preset(path: Path, **dataset: Any) -> Preset:
    pairs = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in {"max_length": 400, **dataset}.items())
    return parse_preset(f"model: {{name_or_path: x}}\ndataset:\n  name_or_path: {path}\n{pairs}").preset


def rows_file(folder: Path, rows: list[tuple[str, str, str]]) -> Path:
    path = folder / "rows.jsonl"
    lines = [json.dumps({"instruction": a, "input": b, "output": c}, ensure_ascii=False) for a, b, c in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def prepared(tokenizer: Any, folder: Path, rows: list[tuple[str, str, str]] = DOLLY, **dataset: Any) -> Prepared:
    path = rows_file(folder, rows)
    return prepare(
        preset(path, **dataset), tokenizer, base_folder=folder, max_positions=None, on_progress=lambda *_: None
    )


def test_the_prompts_are_the_published_ones_letter_by_letter() -> None:
    long = renderer("alpaca", None)(Example("r", "do X", "with Y", "Z")).text
    assert long == (
        "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
        "response that appropriately completes the request.\n\n### Instruction:\ndo X\n\n### Input:\nwith Y\n\n"
        "### Response:\nZ"
    )
    short = renderer("alpaca", None)(Example("r", "do X", "", "Z")).text
    assert short == (
        "Below is an instruction that describes a task. Write a response that appropriately completes the request."
        "\n\n### Instruction:\ndo X\n\n### Response:\nZ"
    )
    rinna = renderer("rinna", None)(Example("r", "問\n題", "入力", "答\nえ")).text
    assert rinna == "### 指示:<NL>問<NL>題<NL><NL>### 入力:<NL>入力<NL><NL>### 回答:<NL>答<NL>え"
    assert renderer("rinna", None)(Example("r", "問", "", "答")).text == "### 指示:<NL>問<NL><NL>### 回答:<NL>答"


@pytest.mark.parametrize("template", ["alpaca", "rinna"])
@pytest.mark.parametrize("name", ["bpe", "bpe_with_begin", "sentencepiece_tokenizer"])
def test_five_dolly_rows_have_the_ids_of_the_plain_text(
    template: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tokenizer = request.getfixturevalue(name)
    got = prepared(tokenizer, tmp_path, template=template)
    begin = [0] if name == "bpe_with_begin" else []
    for i, (instruction, extra, output) in enumerate(DOLLY):
        long, short = (ALPACA_LONG, ALPACA_SHORT) if template == "alpaca" else (RINNA_LONG, RINNA_SHORT)
        text = (long if extra else short).replace("{instruction}", "\x01").replace("{input}", "\x02")
        text = text.replace("\x01", instruction).replace("\x02", extra) + output
        text = text.replace("\n", "<NL>") if template == "rinna" else text
        expected = begin + tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
        assert got.train[i]["input_ids"] == expected
        assert got.train[i]["labels"] == expected
        assert "None" not in text


@pytest.mark.parametrize("template", ["alpaca", "rinna", "chat", "text"])
@pytest.mark.parametrize("name", ["bpe", "bpe_with_begin", "sentencepiece_tokenizer"])
def test_only_the_answer_is_trained_when_asked(
    template: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    tokenizer = request.getfixturevalue(name)
    if template == "chat" and name == "sentencepiece_tokenizer":
        pytest.skip("this tokenizer has no chat template")
    got = prepared(tokenizer, tmp_path, template=template, train_on="response")
    for i, (_, _, output) in enumerate(DOLLY):
        row = got.train[i]
        learned = [label for label in row["labels"] if label >= 0]
        text = decode_answer(template, tokenizer, learned)
        if template == "text":
            assert learned == row["labels"][len(row["labels"]) - len(learned) :]
        else:
            alone = tokenizer(output, add_special_tokens=False)["input_ids"]
            assert text.strip() == decode_answer(template, tokenizer, alone).strip()
            ends = [t for t in learned if t == tokenizer.eos_token_id]
            assert ends == [tokenizer.eos_token_id]
        assert learned[-1] == tokenizer.eos_token_id


def test_several_turns_train_every_answer_and_no_question(bpe: Any) -> None:
    turns = (Turn("user", "one"), Turn("assistant", "ONE"), Turn("user", "two"), Turn("assistant", "TWO"))
    rendered = renderer("chat", bpe)(Example("r", turns=turns))
    assert [rendered.text[a:b] for a, b in rendered.spans] == ["ONE</s>", "TWO</s>"]


def test_special_tokens_stand_exactly_once(bpe_with_begin: Any, tmp_path: Path) -> None:
    ids = prepared(bpe_with_begin, tmp_path).train[0]["input_ids"]
    assert (ids[0], ids[-1], ids.count(0), ids.count(1)) == (0, 1, 1, 1)


def test_padding_hides_no_end_even_when_it_is_the_end_token(bpe: Any, tmp_path: Path) -> None:
    got = prepared(bpe, tmp_path)
    batch = collate([got.train[0], got.train[1]], pad_id=bpe.eos_token_id)
    for row, mask, labels in zip(batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True):
        real = sum(mask)
        assert labels[real - 1] == bpe.eos_token_id == row[real - 1]
        assert set(labels[real:]) <= {-100}


def test_a_cut_row_gets_no_invented_end_and_is_counted(bpe: Any, tmp_path: Path) -> None:
    rows = [("q", "", "a"), ("q", "", "long " * 300)]
    got = prepared(bpe, tmp_path, rows, max_length=120)
    assert got.rows_cut == 1
    assert got.train[0]["input_ids"][-1] == bpe.eos_token_id
    assert len(got.train[1]["input_ids"]) == 120
    assert bpe.eos_token_id not in got.train[1]["input_ids"]
    dropped = prepared(bpe, tmp_path, rows, max_length=120, on_long="drop")
    assert (len(dropped.train), dropped.dropped) == (1, {"too long": 1})


def test_rows_without_a_trained_token_are_dropped_and_none_left_is_refused(bpe: Any, tmp_path: Path) -> None:
    long = [("word " * 300, "", "ok")] * 3
    got = prepared(bpe, tmp_path, [*long, ("q", "", "a")], max_length=120, train_on="response")
    assert (len(got.train), got.dropped) == (1, {"no trained token": 3})
    with pytest.raises(DataError, match=r"0 of 3 rows .*no trained token: 3"):
        prepared(bpe, tmp_path, long, max_length=120, train_on="response")


def test_more_tokens_than_positions_are_refused_with_both_numbers(bpe: Any, tmp_path: Path) -> None:
    path = rows_file(tmp_path, DOLLY)
    with pytest.raises(DataError, match=r"400 and the model has 64"):
        prepare(preset(path), bpe, base_folder=tmp_path, max_positions=64, on_progress=lambda *_: None)


def test_a_tokenizer_without_a_chat_template_is_refused_with_a_choice(sentencepiece_tokenizer: Any) -> None:
    with pytest.raises(DataError, match="no chat template"):
        renderer("chat", sentencepiece_tokenizer)
    with pytest.raises(DataError, match="no template"):
        renderer("alpacca", sentencepiece_tokenizer)


def test_the_split_is_datasets_own_row_for_row() -> None:
    import datasets

    for rows, size, seed in ((15_015, 2000, 42), (15_015, 0.2, 42), (10, 0.15, 1), (7, 1, 0)):
        own_train, own_val = split_indices(rows, size, seed)
        theirs = datasets.Dataset.from_dict({"i": list(range(rows))}).train_test_split(
            test_size=size, shuffle=True, seed=seed
        )
        assert own_train == list(theirs["train"]["i"])
        assert own_val == list(theirs["test"]["i"])
    assert [len(side) for side in split_indices(15_015, 2000, 42)] == [13_015, 2_000]


@pytest.mark.parametrize(("rows", "size"), [(2, 2000), (2, 2), (1, 0.1), (1, 1)])
def test_a_split_that_leaves_nothing_to_train_on_is_refused(rows: int, size: float) -> None:
    with pytest.raises(DataError, match="leaves none to train on"):
        split_indices(rows, size, 42)


def test_the_hash_changes_with_a_single_label(bpe: Any, tmp_path: Path) -> None:
    first = prepared(bpe, tmp_path).data_hash
    assert prepared(bpe, tmp_path).data_hash == first
    assert prepared(bpe, tmp_path, train_on="response").data_hash != first
    assert prepared(bpe, tmp_path, template="rinna").data_hash != first


def test_limit_and_shuffle_choose_rows_by_the_seed(bpe: Any, tmp_path: Path) -> None:
    rows = [("q", "", f"answer {i}") for i in range(50)]
    plain, shuffled = prepared(bpe, tmp_path, rows, limit=10), prepared(bpe, tmp_path, rows, limit=10, shuffle=True)
    assert len(plain.train) == len(shuffled.train) == 10
    assert plain.data_hash != shuffled.data_hash
    assert shuffled.data_hash == prepared(bpe, tmp_path, rows, limit=10, shuffle=True).data_hash


def test_a_prompt_is_the_training_text_up_to_the_answer(bpe: Any) -> None:
    for template in ("alpaca", "rinna", "chat"):
        rendered = renderer(template, bpe)(Example("r", "Name a colour.", "", "Red"))
        assert rendered.text[: rendered.spans[0][0]] == prompt_text(template, bpe, "Name a colour.")


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).map(
    lambda t: t.replace("<", "(")
)


@settings(max_examples=60, deadline=None)
@given(_TEXT.filter(lambda t: t.strip()), st.text(alphabet="ab\n 日本", max_size=10), _TEXT.filter(lambda t: t.strip()))
def test_any_text_survives_to_tokens_and_back(bpe: Any, instruction: str, extra: str, output: str) -> None:
    for template in ("alpaca", "rinna", "text"):
        rendered = renderer(template, bpe)(Example("r", instruction, extra, output))
        ids = bpe(rendered.text, add_special_tokens=False)["input_ids"]
        assert bpe.decode(ids, clean_up_tokenization_spaces=False) == rendered.text
        start, stop = rendered.spans[0]
        expected = output.replace("\n", "<NL>") if template == "rinna" else output
        assert rendered.text[start:stop].endswith(expected)


@pytest.mark.alone
def test_fifteen_thousand_rows_are_ready_within_the_budget(bpe: Any, tmp_path: Path) -> None:
    import time

    rows = [(f"質問 {i}: what is it?", "with input" if i % 3 == 0 else "", f"It is {i}. " * 3) for i in range(15_000)]
    path = rows_file(tmp_path, rows)
    begin = time.monotonic()
    got = prepare(preset(path), bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None)
    assert len(got.train) == 15_000
    assert time.monotonic() - begin < 20  # the budget of 10 s is for an idle machine
