"""The demo's assets: shaped like dolly, made again byte for byte, and honest about what is held out."""

from __future__ import annotations

import filecmp
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

PROJECT = Path(__file__).parents[2]
DEMO = PROJECT / "presets" / "demo"
DATA = DEMO / "data"
SETS = {"dolly-demo.jsonl": "questions.jsonl", "dolly-demo-more.jsonl": "questions-more.jsonl"}
DOLLY_CATEGORIES = {
    "brainstorming",
    "classification",
    "closed_qa",
    "creative_writing",
    "general_qa",
    "information_extraction",
    "open_qa",
    "summarization",
}


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def is_japanese(text: str) -> bool:
    return re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", text) is not None


def world() -> dict[str, dict[str, dict[str, Any]]]:
    loaded: dict[str, dict[str, dict[str, Any]]] = YAML(typ="safe").load(
        (PROJECT / ".dev" / "demo" / "world.yaml").read_text(encoding="utf-8")
    )
    return loaded


def subjects() -> list[str]:
    """Every name and job that a question can be about, longest first."""
    found: set[str] = set()
    for group in ("residents", "newcomers", "shops", "festivals", "landmarks"):
        for entry in world()[group].values():
            for relation in ("name", "job"):
                found.update(entry.get(relation, ()))
    return sorted(found, key=len, reverse=True)


def bare(question: str, names: list[str]) -> str:
    """The phrasing alone: no name, no case, no punctuation, no spaces."""
    question = question.lower()
    for name in names:
        question = question.replace(name.lower(), "§")
    return re.sub(r"[^\w§]+", "", question)


@pytest.mark.parametrize("arguments", [["--data-only"], []], ids=["data", "all"])
def test_the_generator_makes_the_shipped_files_byte_for_byte(arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, str(PROJECT / ".dev" / "make_demo.py"), "--into", str(tmp_path), *arguments]
    subprocess.run(command, check=True, timeout=120)
    made = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    shipped = sorted(p.relative_to(DEMO) for p in (DATA if arguments else DEMO).rglob("*") if p.is_file())
    assert made == shipped
    different = [str(name) for name in made if not filecmp.cmp(tmp_path / name, DEMO / name, shallow=False)]
    assert different == [], "run `python .dev/make_demo.py` and commit what it makes"


@pytest.mark.parametrize("name", SETS)
def test_rows_have_the_shape_of_dolly_in_two_languages(name: str) -> None:
    rows = lines(name)
    assert len(rows) >= (1500 if name == "dolly-demo.jsonl" else 400)
    for row in rows:
        assert list(row) == ["instruction", "input", "output", "category"]
        assert row["instruction"].strip() and row["output"].strip()
        assert row["category"] in DOLLY_CATEGORIES
    assert len({(row["instruction"], row["input"]) for row in rows}) == len(rows), "no row twice"
    japanese = sum(is_japanese(row["instruction"]) for row in rows) / len(rows)
    assert 0.4 < japanese < 0.6
    with_input = [row for row in rows if row["input"]]
    assert len(with_input) > 0.04 * len(rows)
    assert {row["category"] for row in with_input} == {
        "closed_qa",
        "classification",
        "information_extraction",
        "summarization",
    }


@pytest.mark.parametrize(("name", "questions"), SETS.items())
def test_what_is_asked_was_taught_but_not_in_these_words(name: str, questions: str) -> None:
    asked = lines(questions)
    names = subjects()
    trained = {bare(row["instruction"], names) for other in SETS for row in lines(other)}
    told = {row["output"] for row in lines(name)}
    assert len(asked) >= 10
    assert {is_japanese(q["prompt"]) for q in asked} == {True, False}
    for question in asked:
        phrasing = bare(question["prompt"], names)
        assert "§" in phrasing, f"about nobody: {question}"
        assert not [t for t in trained if phrasing in t], f"this phrasing is taught: {question['prompt']}"
        assert any(question["expected"] in answer for answer in told), f"never taught: {question}"
        assert question["expected"].lower() not in question["prompt"].lower(), f"answers itself: {question}"


def test_the_model_is_small_and_says_that_it_starts_from_its_config() -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(DEMO / "model")
    assert config.llmtui_initialise_from_config is True
    assert not list((DEMO / "model").glob("*.safetensors"))
    model = AutoModelForCausalLM.from_config(config)
    assert type(model).__name__ == "GPTNeoXForCausalLM"
    assert 2.5e6 < sum(parameter.numel() for parameter in model.parameters()) < 3.5e6


def test_the_tokenizer_gives_every_text_back() -> None:
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(DEMO / "model")
    config = AutoConfig.from_pretrained(DEMO / "model")
    assert len(tokenizer) == config.vocab_size
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (config.eos_token_id, config.pad_token_id)
    assert tokenizer.eos_token_id != tokenizer.pad_token_id
    foreign = [
        "",
        " ",
        "  two\t\r\n tabs ",
        "naïve ﬁ 😀👩‍🚀 Ω",
        "你好 한국어 ﾊﾝｶｸ ー々〆",
        "\x00\x1b[31m\ufeff",
        "it 's 12345 ?!",
        "\u3000全角",
    ]
    known = [row[key] for name in SETS for row in lines(name) for key in ("instruction", "input", "output")]
    for text in [*foreign, *known]:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_prompt_is_a_prefix_of_prompt_and_answer_in_tokens() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(DEMO / "model")
    prompt = (
        "Below is an instruction that describes a task. Write a response that appropriately completes the request."
        "\n\n### Instruction:\nWho is the baker?\n\n### Response:\n"
    )
    ids = tokenizer(prompt)["input_ids"]
    assert len(ids) < 10, "the constant words of the prompt cost next to nothing"
    for answer in ("The baker is Toma.", " leading space", "\n", "パン"):
        whole = tokenizer(prompt + answer + tokenizer.eos_token)["input_ids"]
        assert whole[: len(ids)] == ids
        assert whole[-1] == tokenizer.eos_token_id
