"""Chat templates: the tokenizer's own, ours by name, and the ways real ones differ; every answer to the character."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmtui.core.data.chat_templates import named_chat_template, use_chat_template
from llmtui.core.data.prompts import prompt_text
from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokens import Counts, encode_batch, finish_rows, special_tokens
from llmtui.core.errors import DataError
from llmtui.core.preset.schema import CHAT_TEMPLATES

ASK = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
TRIMS = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}</s>{% endfor %}" + ASK.replace(
    "<|im_start|>assistant\n", "[assistant]"
)
# Qwen3's habits: thoughts are taken out of earlier turns, and the last answer always has some.
THINKS = (
    """{%- set ns = namespace(found=false, last=messages|length - 1) %}
{%- for m in messages[::-1] %}
    {%- if not ns.found and m.role == 'user' %}{% set ns.found = true %}{% set ns.last = messages|length - 1 - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content %}
    {%- set thoughts = '' %}
    {%- if '</think>' in content %}
        {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|im_start|>' + m.role + '\n' }}
    {%- if m.role == 'assistant' and loop.index0 > ns.last %}
        {{- '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
    {%- else %}
        {{- content }}
    {%- endif %}
    {{- '</s>\n' }}
{%- endfor %}"""
    + ASK
)
# Phi-3's: one more token closes the conversation.
CLOSES = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
# DeepSeek-R1's: asks with an opened thought, which earlier turns do not have.
ASKS_FOR_THOUGHTS = (
    "{% for m in messages %}{% if m.role == 'user' %}<U>{{ m.content }}{% else %}"
    "<A>{{ m.content.split('</think>')[-1] }}</s>{% endif %}{% endfor %}{% if add_generation_prompt %}<A><think>\n{% endif %}"
)
BLOCKS = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<a>{%- generation -%} {{ m.content | trim | upper }}</s>"
    "{%- endgeneration -%}{% else %}<u>{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)
NO_END = "{% for m in messages %}[{{ m.role }}]{{ m.content | capitalize }}\n{% endfor %}"
LAST_TWO = "{% for m in messages[-2:] %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
STRICT = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content }}</s>{% endfor %}"
)


def talk(*said: str) -> Example:
    roles = ("user", "assistant")
    return Example("talk.jsonl, row 3", turns=tuple(Turn(roles[n % 2], text) for n, text in enumerate(said)))


def with_template(tokenizer: Any, template: str) -> Any:
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = template
    return changed


def learned(item: Rendered) -> list[str]:
    return [item.text[begin:end] for begin, end in item.spans]


@pytest.mark.parametrize(
    ("template", "said", "expected"),
    [
        (TRIMS, ("a ", " A\n\n", "b", "B "), ["A</s>", "B</s>"]),
        (TRIMS, ("a", "A", "b"), ["A</s>"]),
        (TRIMS, ("A", "A", "A", "A"), ["A</s>", "A</s>"]),
        (TRIMS, ("[assistant]x</s>", "x", "x</s>", "[assistant]x"), ["x</s>", "[assistant]x</s>"]),
        (THINKS, ("a", "A"), ["<think>\n\n</think>\n\nA</s>"]),
        (THINKS, ("a", "A", "b", "B"), ["A</s>", "<think>\n\n</think>\n\nB</s>"]),
        (THINKS, ("a", "<think>\nx\n</think>\n\nA", "b", "B"), ["A</s>", "<think>\n\n</think>\n\nB</s>"]),
        (
            THINKS,
            ("a", "<think>\nx\n</think>\n\nA", "b", "<think>\nhm\n</think>\n\nB"),
            ["A</s>", "<think>\nhm\n</think>\n\nB</s>"],
        ),
        (CLOSES, ("a", "A", "b", "B"), ["A<|end|>", "B<|end|>\n</s>"]),
        (ASKS_FOR_THOUGHTS, ("a", "<think>x</think>A", "b", "<think>y</think>B"), ["A</s>", "B</s>"]),
        (ASKS_FOR_THOUGHTS, ("a", "<think>all</think>", "b", "B"), ["</s>", "B</s>"]),
        (BLOCKS, ("a", " yes ", "b", "no"), ["YES</s>", "NO</s>"]),
        (NO_END, ("a", "hello World"), ["[assistant]Hello world\n"]),
    ],
)
def test_every_answer_is_found_however_the_template_changes_it(
    bpe: Any, template: str, said: tuple[str, ...], expected: list[str]
) -> None:
    tokenizer = with_template(bpe, template)
    example = talk(*said)
    item = renderer("chat", tokenizer)(example)
    assert learned(item) == expected
    messages = [{"role": turn.role, "content": turn.content} for turn in example.turns]
    assert item.text == tokenizer.apply_chat_template(messages, tokenize=False)


@pytest.mark.parametrize("template", [TRIMS, THINKS, CLOSES, BLOCKS, NO_END])
def test_a_prompt_is_what_transformers_makes_of_it(bpe: Any, template: str) -> None:
    tokenizer = with_template(bpe, template)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    theirs = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert prompt_text("chat", tokenizer, "Why?", "Be brief.") == theirs


_SAID = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n </s>[]| 日"), min_size=1, max_size=12
)


@pytest.mark.parametrize(
    ("plain", "marked"),
    [
        (
            TRIMS,
            "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
            "{{ m.content | trim }}</s>{% endgeneration %}{% else %}{{ m.content | trim }}</s>{% endif %}{% endfor %}",
        ),
        (
            "{% for m in messages %}{{ m.role }}: {{ m.content }}</s>\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}",
            "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>"
            "{% endgeneration %}{{ '\n' }}{% else %}{{ m.content }}</s>\n{% endif %}{% endfor %}",
        ),
    ],
)
def test_the_mask_is_transformers_own_for_a_template_that_marks_its_answers(bpe: Any, plain: str, marked: str) -> None:
    """An independent reading: transformers follows `{% generation %}` blocks, we get the template without them."""
    ours, theirs = with_template(bpe, plain), with_template(bpe, marked)
    render = renderer("chat", ours)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(_SAID.filter(str.strip), min_size=2, max_size=6).filter(lambda said: len(said) % 2 == 0))
    def same(said: list[str]) -> None:
        said = [text.replace("</s>", "") or "x" for text in said]
        example = talk(*said)
        item = render(example)
        ((ids, trained),) = encode_batch(ours, [item], masked=True)
        messages = [{"role": turn.role, "content": turn.content} for turn in example.turns]
        oracle = theirs.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
        assert ids == oracle["input_ids"]
        assert [int(flag) for flag in trained] == oracle["assistant_masks"]

    same()


def test_a_template_that_leaves_turns_out_is_refused_for_answers_only(bpe: Any) -> None:
    tokenizer = with_template(bpe, LAST_TWO)
    with pytest.raises(DataError, match="changes earlier turns") as refused:
        renderer("chat", tokenizer)(talk("a", "A", "b", "B"))
    assert refused.value.place == "talk.jsonl, row 3"
    whole = renderer("chat", tokenizer, masked=False)(talk("a", "A", "b", "B"))
    assert whole.spans == ((0, len(whole.text)),)


def test_a_template_that_refuses_a_conversation_is_named_with_its_row(bpe: Any) -> None:
    system = Example("talk.jsonl, row 9", turns=(Turn("system", "s"), Turn("user", "u"), Turn("assistant", "a")))
    with pytest.raises(DataError, match="roles must alternate") as refused:
        renderer("chat", with_template(bpe, STRICT))(system)
    assert refused.value.place == "talk.jsonl, row 9"
    with pytest.raises(DataError, match="roles must alternate"):
        prompt_text("chat", with_template(bpe, STRICT), "u", "s")


def test_a_conversation_without_an_answer_teaches_nothing(bpe: Any) -> None:
    assert renderer("chat", with_template(bpe, TRIMS))(talk("a")).spans == ()


def test_a_broken_template_is_named_with_its_line(bpe: Any) -> None:
    with pytest.raises(DataError, match="line 2"):
        renderer("chat", with_template(bpe, "{% for m in messages %}\n{{ m.content }"))


def test_an_answer_that_brings_its_end_token_has_it_once(bpe: Any) -> None:
    item = renderer("chat", bpe)(talk("a", "A</s>", "b", "B</s>"))
    assert learned(item) == ["A</s>", "B</s>"]


def test_a_template_that_ends_nothing_gets_the_end_token(bpe: Any) -> None:
    item = renderer("chat", with_template(bpe, NO_END))(talk("a", "yes"))
    (encoded,) = encode_batch(bpe, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(bpe), 100, "cut", Counts())
    assert (piece.ids[-1], piece.trained[-1], piece.ids.count(bpe.eos_token_id)) == (bpe.eos_token_id, True, 1)
    open_end = renderer("chat", with_template(bpe, NO_END))(talk("a", "yes", "and?"))
    assert not open_end.append_eos, "a conversation that ends with a question has no end"


# --- chosen by name -----------------------------------------------------------------------------------


def test_a_tokenizer_without_one_is_offered_every_name(rinna: Any) -> None:
    with pytest.raises(DataError, match="no chat template") as refused:
        renderer("chat", rinna)
    assert all(f"chat:{name}" in refused.value.hint for name in CHAT_TEMPLATES)
    with pytest.raises(DataError, match='no chat template "chatm"') as near:
        use_chat_template("chat:chatm", rinna)
    assert near.value.hint == "did you mean chat:chatml?"


@pytest.mark.parametrize("name", CHAT_TEMPLATES)
@pytest.mark.parametrize("kind", ["bpe", "bpe_with_begin", "rinna", "sentencepiece_tokenizer"])
def test_a_named_one_is_saved_and_reads_back_the_same(
    name: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from transformers import AutoTokenizer

    tokenizer = copy.deepcopy(request.getfixturevalue(kind))
    example = Example("r", turns=(Turn("system", "S"), *talk("one", "ONE", "two", "TWO").turns))
    item = renderer(f"chat:{name}", tokenizer)(example)
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    messages = [{"role": turn.role, "content": turn.content} for turn in example.turns]
    assert again.apply_chat_template(messages, tokenize=False) == item.text
    assert renderer("chat", again)(example) == item
    # Whoever asks through transformers gets the ids that were trained.
    (encoded,) = encode_batch(again, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(again), 10_000, "cut", Counts())
    assert again.apply_chat_template(messages, tokenize=True, return_dict=False) == piece.ids


@pytest.mark.parametrize("name", CHAT_TEMPLATES)
def test_a_named_one_works_without_an_end_token(name: str, bpe: Any) -> None:
    tokenizer = copy.deepcopy(bpe)
    tokenizer.eos_token = tokenizer.bos_token = None
    item = renderer(f"chat:{name}", tokenizer)(talk("one", "ONE"))
    assert "None" not in item.text
    assert [said for said in learned(item) if "ONE" in said] == learned(item)


def test_every_name_is_a_file_and_every_file_a_name(bpe: Any) -> None:
    import llmtui.core.data.chat_templates as room

    folder = Path(room.__file__).parent / "chat_template_files"
    assert sorted(path.stem for path in folder.glob("*.jinja")) == list(CHAT_TEMPLATES)
    assert all(named_chat_template(name, bpe) for name in CHAT_TEMPLATES)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|></s>\n"),
        ("llama-3", "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
                    "Q<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|></s>"),
        ("gemma", "<start_of_turn>user\nS\n\nQ<end_of_turn>\n<start_of_turn>model\nA<end_of_turn></s>\n"),
        ("mistral", "[INST] S\n\nQ [/INST] A</s>"),
        ("zephyr", "<|system|>\nS</s>\n<|user|>\nQ</s>\n<|assistant|>\nA</s>\n"),
        ("vicuna", "S USER: Q ASSISTANT: A</s>"),
        ("alpaca-chat", "S\n\n### Instruction:\nQ\n\n### Response:\nA</s>"),
        ("rinna-chat", "S<NL>ユーザー: Q<NL>システム: A</s>"),
    ],
)  # fmt: skip
def test_a_named_one_is_written_letter_by_letter(name: str, text: str, bpe: Any) -> None:
    example = Example("r", turns=(Turn("system", "S"), Turn("user", "Q"), Turn("assistant", "A")))
    assert renderer(f"chat:{name}", copy.deepcopy(bpe))(example).text == text


# --- the real one -------------------------------------------------------------------------------------


def test_smollm2s_own_template_is_read_as_it_is_written(smollm2: Any) -> None:
    example = talk("Hello\n\nthere ", "Hi! How are you? ", "<|user|> 日本？", "東京です。\n")
    item = renderer("chat", smollm2)(example)
    messages = [{"role": turn.role, "content": turn.content} for turn in example.turns]
    assert item.text == smollm2.apply_chat_template(messages, tokenize=False)
    (encoded,) = encode_batch(smollm2, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(smollm2), 1000, "cut", Counts())
    assert piece.ids == smollm2.apply_chat_template(messages, tokenize=True, return_dict=False)
    # An independent reading: what stands between the assistant's header and the end of its turn.
    expected = re.findall(r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)", item.text, re.DOTALL)
    runs: list[list[int]] = []
    for number, (token, trained) in enumerate(zip(piece.ids, piece.trained, strict=True)):
        if trained and (not number or not piece.trained[number - 1]):
            runs.append([])
        if trained:
            runs[-1].append(token)
    assert [smollm2.decode(run) for run in runs] == expected
    assert piece.ended


def test_smollm2s_prompt_stands_at_the_front_of_its_training_text(smollm2: Any) -> None:
    item = renderer("chat", smollm2)(Example("r", "Name a colour.", "", "Red"))
    assert item.text[: item.spans[0][0]] == prompt_text("chat", smollm2, "Name a colour.")
