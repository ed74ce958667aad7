"""Rows are shown as the model sees them: every token's text, what is trained, where it came from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data import Prepared, prepare
from llmtui.core.data.preview import Preview, Side
from llmtui.core.preset import parse_preset

ROWS = [
    {"instruction": "Say hello.", "output": "Hello 👋🏽, 世界!"},
    {"instruction": "Name two\nthings.", "input": "Short ones.", "output": "A\tcat.\r\nA dog."},
    {"instruction": "質問?", "output": "\x1b[31mred\u2028[@click=x]"},
]


def made(folder: Path, tokenizer: Any, rows: list[dict[str, Any]], dataset: str) -> Prepared:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = f"model: {{name_or_path: a/b}}\ndataset: {{name_or_path: rows.jsonl, max_length: 900, {dataset}}}\n"
    preset = parse_preset(text).preset
    return prepare(preset, tokenizer, base_folder=folder, max_positions=None, on_progress=lambda *_: None)


@pytest.mark.parametrize("template", ["alpaca", "rinna"])
@pytest.mark.parametrize("name", ["bpe", "bpe_with_begin", "rinna"])
def test_the_answer_and_nothing_else_is_shown_as_trained(
    tmp_path: Path, request: pytest.FixtureRequest, template: str, name: str
) -> None:
    data = made(tmp_path, request.getfixturevalue(name), ROWS, f"template: {template}, train_on: response")
    preview = Preview(data)
    newline = "<NL>" if template == "rinna" else "\n"
    for index, row in enumerate(ROWS):
        shown = preview.row("train", index)
        answer = str(row["output"]).replace("\n", newline)
        trained = "".join(piece.text for piece in shown.pieces if piece.trained)
        assert trained.removesuffix("</s>").strip() == answer.strip()
        assert shown.place == f"rows.jsonl:{index + 1}"
        assert (shown.ended, shown.cut, shown.label) == (True, False, None)
        labels = data.train[index]["labels"]
        assert (shown.tokens, shown.trained) == (len(labels), sum(label >= 0 for label in labels))
        last = shown.pieces[-1]
        assert (last.text, last.kind, last.trained) == ("</s>", "special", True)
        assert str(row["instruction"]).replace("\n", newline) in shown.text


def test_the_whole_text_is_there_with_every_special_token_for_itself(tmp_path: Path, bpe_with_begin: Any) -> None:
    preview = Preview(made(tmp_path, bpe_with_begin, [{"text": "one </s> two 世界"}], "template: text"))
    shown = preview.row("train", 0)
    assert shown.text == "<s>one </s> two 世界</s>"
    kinds = [(piece.text, piece.kind) for piece in shown.pieces]
    assert kinds == [("<s>", "special"), ("one ", "trained"), ("</s>", "special"), (" two 世界", "trained"),
                     ("</s>", "special")]  # fmt: skip
    assert not shown.pieces[0].trained, "nothing predicts the first token"


@pytest.mark.parametrize("name", ["bpe", "bpe_with_end", "rinna", "smollm2", "sentencepiece_tokenizer"])
def test_any_text_is_shown_as_it_stands_in_its_file(tmp_path: Path, request: pytest.FixtureRequest, name: str) -> None:
    tokenizer = request.getfixturevalue(name)
    texts = [
        "  two blanks\tand a tab",
        "A#B##C @@",
        "é e\u0301 ﬁ Ⅳ",
        "👩‍👩‍👧‍👦",
        "<0x41> ▁ Ġ Ċ",
        "\u200bzero\x00",
        "日本語 ｶﾅ",
    ]
    if name == "rinna":  # for a sentencepiece model these are other things than they look: a byte, a blank
        texts.remove("<0x41> ▁ Ġ Ċ")
    if name == "sentencepiece_tokenizer":  # it has no bytes for what it does not know
        texts = ["The quick brown fox", "これはテストです"]
    shown = Preview(made(tmp_path, tokenizer, [{"text": text} for text in texts], "template: text"))
    for index, text in enumerate(texts):
        row = shown.row("train", index)
        got = "".join(piece.text for piece in row.pieces if piece.kind != "special")
        assert got == text or (name == "sentencepiece_tokenizer" and got == " " + text), row.pieces
        assert shown.find("train", text, 0) == index


def test_a_character_cut_in_its_middle_is_said_with_a_replacement(tmp_path: Path, bpe: Any) -> None:
    data = made(tmp_path, bpe, [{"text": "ab" + "𝔘" * 9}], "template: text")
    whole = Preview(data).row("train", 0)
    assert whole.text == "ab" + "𝔘" * 9 + "</s>"
    before = len(bpe("ab" + "𝔘" * 8, add_special_tokens=False)["input_ids"])
    (tmp_path / "cut").mkdir()
    text = (
        f"model: {{name_or_path: a/b}}\ndataset: {{name_or_path: rows.jsonl, template: text, max_length: {before + 1}}}"
    )
    preset = parse_preset(text).preset
    cut = prepare(preset, bpe, base_folder=tmp_path, max_positions=None, on_progress=lambda *_: None)
    shown = Preview(cut).row("train", 0)
    assert shown.text == "ab" + "𝔘" * 8 + "�"
    assert (shown.cut, shown.ended) == (True, False)


def test_a_text_is_found_in_any_row_both_ways_and_round(tmp_path: Path, bpe: Any) -> None:
    rows = [{"instruction": f"Question {n}?", "output": "A CAT 猫" if n in (2, 5) else "a dog"} for n in range(9)]
    preview = Preview(made(tmp_path, bpe, rows, "val_size: 3"))
    sides: tuple[Side, ...] = ("train", "val")
    shown = {side: [preview.row(side, i) for i in range(preview.rows(side))] for side in sides}
    for side, there in shown.items():
        hits = [row.index for row in there if "cat 猫" in row.text.lower()]
        got = preview.find(side, "cat 猫", 0)
        assert got == (hits[0] if hits else None)
        for hit in hits:
            following = hits[(hits.index(hit) + 1) % len(hits)]
            assert preview.find(side, "Cat 猫", hit + 1) == following
            assert preview.find(side, "cat 猫", hit, backwards=True) == hit
    assert preview.find("train", "no such words", 0) is None
    assert preview.find("train", "", 0) is None
    assert preview.find("train", "dog", 0, stop=lambda: True) is None
    last = shown["train"][-1]
    assert preview.find("train", last.place, 0) == last.index
    assert preview.find("train", ":" + last.place.rpartition(":")[2], 0) == last.index


def test_labels_are_shown_and_a_side_without_rows_has_none(tmp_path: Path, bpe: Any) -> None:
    preview = Preview(made(tmp_path, bpe, [{"text": "x", "kind": "pos"}, {"text": "y", "kind": "neg"}],
                           "label: {column: kind}"))  # fmt: skip
    assert [preview.row("train", i).label for i in range(2)] == ["pos", "neg"]
    assert preview.rows("val") == 0
    for side, index in (("val", 0), ("train", 2), ("train", -1)):
        with pytest.raises(IndexError):
            preview.row(side, index)  # type: ignore[arg-type]


def test_no_model_library_is_needed_to_look(tmp_path: Path, bpe: Any) -> None:
    data = made(tmp_path, bpe, ROWS, "template: alpaca")
    code = (
        "import sys, pathlib\n"
        "from llmtui.core.data.prepare import open_prepared\n"
        "from llmtui.core.data.preview import Preview\n"
        "from llmtui.core.data.statistics import statistics\n"
        "from llmtui.core.preset import parse_preset\n"
        "data = open_prepared(pathlib.Path(sys.argv[1]))\n"
        "assert 'Say hello' in Preview(data).row('train', 0).text\n"
        "preset = parse_preset('model: {name_or_path: a/b}\\ndataset: {name_or_path: rows.jsonl}').preset\n"
        "assert statistics(data, preset).train.rows == 3\n"
        "assert not {'torch', 'transformers', 'datasets', 'tokenizers'} & sys.modules.keys()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(data.folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
