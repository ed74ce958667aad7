"""`llmtui data`: counted and shown as it will be fed, again within a second, the same for programs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.core.worker.small import make_model
from tests.tui.commands.command import llmtui

pytestmark = pytest.mark.timeout(120)
ROWS = (
    '{"instruction": "who sees the cat?", "output": "the dog \\u001b[31m"}\n'
    '{"instruction": "what likes the bird?", "output": ""}\n'
    '{"instruction": "where is the river?", "output": "a big green tree"}\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    make_model(made / "tiny")
    (made / "rows.jsonl").write_text(ROWS)
    (made / "my.yaml").write_text(
        "model: {name_or_path: ./tiny}\ngpu_split: {gpus: none}\ntraining: {max_steps: 5}\n"
        "dataset: {name_or_path: rows.jsonl, template: rinna, train_on: response, max_length: 120}\n"
    )
    return made


def test_counts_rows_and_the_same_for_programs(folder: Path) -> None:
    shown = llmtui("data", str(folder / "my.yaml"))
    assert shown.code == 0, shown
    for words in (
        "rows.jsonl: 3 rows, 1 dropped: no output", "training    2 rows", "steps       5", "group_by_length",
        "train row 1 of 2, rows.jsonl:1", "{+the dog \\x1b[31m[[</s>]]+}", "指示",
    ):  # fmt: skip
        assert words in shown.out, shown.out
    assert "\x1b" not in shown.out

    begin = time.monotonic()
    told = llmtui("data", str(folder / "my.yaml"), "--rows", "1", "--find", "GREEN", "--json")
    assert time.monotonic() - begin < 5, "the rows are kept: 1 s on an idle machine"
    assert told.err == ""
    assert (told.json["train"]["rows"], told.json["dropped"]) == (2, {"no output": 1})
    (row,) = told.json["samples"]
    assert row["place"] == "rows.jsonl:3"
    learned = "".join(piece["text"] for piece in row["pieces"] if piece["trained"])
    assert learned == "a big green tree</s>"


@pytest.mark.parametrize(
    ("sets", "code", "words"),
    [
        ("dataset.name_or_path=nope.jsonl", 2, "there is no such data file"),
        ("dataset.max_length=500", 2, "500 and the model has 128 positions"),
        ("model.name_or_path=./nowhere", 2, "there is no folder"),
        ("dataset.template=chat", 2, "no chat template"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder: Path, sets: str, code: int, words: str) -> None:
    done = llmtui("data", str(folder / "my.yaml"), "--set", sets, "--json")
    assert (done.code, words in done.json["error"]["message"]) == (code, True), done
