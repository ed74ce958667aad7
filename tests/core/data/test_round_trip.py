"""Any text survives row → template → tokens → decode, for every template and kind of tokenizer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.data.prompts import decode_answer, prompt_ids, prompt_text
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokens import Counts, Piece, encode_batch, finish_rows, special_tokens
from llmtui.core.preset.schema import CHAT_TEMPLATES

OWN = "{% if input %}\n[{{ input }}]\n{% endif %}\nQ {{ instruction }}\nA {{ output }}\n"
TEMPLATES = ["alpaca", "rinna", "text", "chat", *(f"chat:{name}" for name in CHAT_TEMPLATES), "own.jinja"]
TOKENIZERS = ["bpe", "bpe_with_begin", "bpe_with_end", "rinna"]
# "<" could make a special token of what is text; sentencepiece writes blanks as U+2581 and cannot hold U+0000.
_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="<\0\u2581", include_characters="\n\r\t\u2028 日😀"),
    min_size=1, max_size=24,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "own.jinja").write_text(OWN, encoding="utf-8")
    return folder


def tokenizer_of(request: pytest.FixtureRequest, name: str, template: str) -> Any:
    """One of its own for each test: a chat template chosen by name is set on it."""
    tokenizer = copy.deepcopy(request.getfixturevalue(name))
    if template == "chat" and name == "rinna":
        pytest.skip("this tokenizer has no chat template")
    return tokenizer


def tokens(render: Any, tokenizer: Any, example: Example) -> tuple[Piece, str]:
    item = render(example)
    (encoded,) = encode_batch(tokenizer, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(tokenizer), 100_000, "cut", Counts())
    return piece, item.text


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_text_comes_back_and_the_answer_is_what_is_learned(
    template: str, name: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    tokenizer = tokenizer_of(request, name, template)
    render = renderer(template, tokenizer, folder)
    special = special_tokens(tokenizer)

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(_TEXT, st.one_of(st.just(""), _TEXT), _TEXT)
    def survives(instruction: str, extra: str, output: str) -> None:
        example = Example("rows.jsonl, row 1", instruction, extra, output)
        piece, text = tokens(render, tokenizer, example)
        ids = piece.ids
        assert tuple(ids[: len(special.begin)]) == special.begin
        body = ids[len(special.begin) :] if not text.startswith("<s>") else ids
        assert tokenizer.decode(body).removesuffix("</s>") == text.removesuffix("</s>")
        for part in (instruction, extra, output):
            assert part in text or part.replace("\n", "<NL>") in text
        learned = [token for token, trained in zip(ids, piece.trained, strict=True) if trained]
        said = decode_answer(template, tokenizer, learned, folder)
        if template == "text":
            assert said.endswith(output)
        else:
            assert output in said
            assert said.removeprefix(" ").startswith(output)
        assert piece.ended
        assert tokenizer.eos_token_id in learned[-3:], "the end is learned with the answer"

    survives()


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_prompt_has_the_ids_that_training_has_before_the_answer(
    template: str, name: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    tokenizer = tokenizer_of(request, name, template)
    if template == "text":
        pytest.skip("plain text has no prompt")
    piece, _ = tokens(
        renderer(template, tokenizer, folder), tokenizer, Example("r", "Name a colour.", "", "緑 is one.")
    )
    asked = prompt_ids(tokenizer, prompt_text(template, tokenizer, "Name a colour.", base_folder=folder))
    assert (
        asked == [token for token, trained in zip(piece.ids, piece.trained, strict=True) if not trained][: len(asked)]
    )
    assert piece.trained[: len(asked) + 1] == [False] * len(asked) + [True]


@pytest.mark.parametrize("template", ["chat", *(f"chat:{name}" for name in CHAT_TEMPLATES)])
def test_several_turns_learn_every_answer_with_its_end(template: str, request: pytest.FixtureRequest) -> None:
    tokenizer = tokenizer_of(request, "bpe_with_begin", template)
    turns = (Turn("user", "one?"), Turn("assistant", "ONE"), Turn("user", "two?"), Turn("assistant", "TWO\nTOO"))
    item = renderer(template, tokenizer)(Example("r", turns=turns))
    learned = [item.text[a:b] for a, b in item.spans]
    assert len(learned) == 2
    for said, answer in zip(learned, ("ONE", "TWO\nTOO"), strict=True):
        assert said.lstrip(" ").startswith(answer.replace("\n", "<NL>") if "rinna" in template else answer)
        assert said.endswith("</s>")
        assert "?" not in said


def test_the_word_none_never_appears(folder: Path, request: pytest.FixtureRequest) -> None:
    (folder / "all.jinja").write_text("{{ instruction }}{{ input }}{{ label }}{{ text }}{{ bos }}|{{ output }}")
    for template in (*TEMPLATES, "all.jinja"):
        tokenizer = copy.deepcopy(request.getfixturevalue("bpe"))
        tokenizer.bos_token = None
        assert "None" not in renderer(template, tokenizer, folder)(Example("r", "a", "", "b")).text
