"""A template of one's own: what it may use, what of it is learned, and how its mistakes are named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.data.prompts import decode_answer, prompt_text
from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import renderer
from llmtui.core.data.tokens import Counts, encode_batch, finish_rows, special_tokens
from llmtui.core.errors import DataError

ROW = Example("rows.csv, row 2", "do it", "", "as said")
WITH_INPUT = Example("rows.csv, row 3", "do it", "with this", "  as\nsaid ")
LABELLED = Example("rows.csv, row 4", "judge", "good film", "pos", label="pos")
TALK = Example("talk.jsonl, row 5", turns=(Turn("user", "a"), Turn("assistant", "A"), Turn("user", "b"),
                                           Turn("assistant", "B")))  # fmt: skip
ONE_EXCHANGE = Example("talk.jsonl, row 6", turns=(Turn("system", "S"), Turn("user", "a"), Turn("assistant", "A")))
PLAIN = Example("text.txt, line 7", text="once upon")

Own = Callable[[str], str]


@pytest.fixture
def own(tmp_path: Path) -> Own:
    def write(text: str) -> str:
        (tmp_path / "own.jinja").write_text(text, encoding="utf-8")
        return str(tmp_path / "own.jinja")

    return write


def learned(item: Rendered) -> list[str]:
    return [item.text[begin:end] for begin, end in item.spans]


@pytest.mark.parametrize(
    ("template", "example", "text", "answers"),
    [
        ("Q {{ instruction }}\n{% if input %}\nI {{ input }}\n{% endif %}\nA {{ output }}\n", ROW,
         "Q do it\nA as said", ["as said"]),
        ("Q {{ instruction }}\n{% if input %}\nI {{ input }}\n{% endif %}\nA {{ output }}\n", WITH_INPUT,
         "Q do it\nI with this\nA   as\nsaid ", ["  as\nsaid "]),
        ("{{ instruction }}>{{ output | trim }}", WITH_INPUT, "do it>as\nsaid", ["as\nsaid"]),
        ("{{ instruction }}>{{ output | upper }}</s>", ROW, "do it>AS SAID</s>", ["AS SAID</s>"]),
        ("{{ instruction }}>{{ output | capitalize }}", ROW, "do it>As said", ["As said"]),
        ("{{ instruction }}>{{ output | reverse }}", ROW, "do it>dias sa", ["dias sa"]),
        ("{{ instruction }}>{{ output | replace('\\n', '<NL>') }}!", WITH_INPUT, "do it>  as<NL>said !", ["  as<NL>said "]),
        ("{{ instruction }}>{{ output[:2] }}", ROW, "do it>as", ["as"]),
        ("{{ instruction }}>{{ output }}{{ eos_token }}", ROW, "do it>as said</s>", ["as said</s>"]),
        ("{{ output }} is the answer to {{ instruction }}", ROW, "as said is the answer to do it", ["as said"]),
        ("{{ instruction }}: {{ output }} / {{ output }}", ROW, "do it: as said / as said", ["as said", "as said"]),
        ("{% generation %}{{ output }}{{ eos }}{% endgeneration %} (end)", ROW, "as said</s> (end)", ["as said</s>"]),
        ("{{ instruction }}{% generation %}: {{ output }}{% endgeneration %}", ROW, "do it: as said", [": as said"]),
        ("{{ {'q': instruction, 'a': output} | tojson }}", WITH_INPUT, '{"q": "do it", "a": "  as\\nsaid "}', ["  as\\nsaid "]),
        ("{{ input }} => {{ label }}", LABELLED, "good film => pos", ["pos"]),
        ("{{ instruction }}>{{ output }}", Example("r", "as said", "", "as said"), "as said>as said", ["as said"]),
        ("{{ instruction }}>{{ output }}", ONE_EXCHANGE, "a>A", ["A"]),
        ("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}", TALK,
         "<user>a\n<assistant>A\n<user>b\n<assistant>B\n", ["A", "B"]),
        ("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}", WITH_INPUT,
         "<user>do it\n\nwith this\n<assistant>  as\nsaid \n", ["  as\nsaid "]),
        ("{% for m in messages %}{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}{% endif %}", TALK,
         "a</s>A</s>b</s>B</s>", ["A</s>", "B</s>"]),
        ("<{{ text }}>", PLAIN, "<once upon>", ["once upon"]),
        ("{{ text or instruction ~ '>' ~ output }}", ROW, "do it>as said", ["as said"]),
    ],
)  # fmt: skip
def test_the_answer_is_what_the_template_makes_of_it(
    own: Own, bpe: Any, template: str, example: Example, text: str, answers: list[str]
) -> None:
    item = renderer(own(template), copy.deepcopy(bpe))(example)
    assert item.text == text
    assert learned(item) == answers
    everything = renderer(own(template), copy.deepcopy(bpe), masked=False)(example)
    assert (everything.text, everything.spans) == (text, ((0, len(text)),))


@pytest.mark.parametrize(
    "template", ["{{ instruction }}>{{ output }}", "{{ instruction }}>{{ output }}{{ eos_token }}"]
)
def test_the_end_token_stands_once_whoever_writes_it(own: Own, bpe_with_end: Any, template: str) -> None:
    item = renderer(own(template), bpe_with_end)(ROW)
    (encoded,) = encode_batch(bpe_with_end, [item], masked=True)
    (piece,) = finish_rows(*encoded, item, special_tokens(bpe_with_end), 100, "cut", Counts())
    end = bpe_with_end.eos_token_id
    assert (piece.ids[-1], piece.ids.count(end), piece.ids.count(bpe_with_end.bos_token_id)) == (end, 1, 1)
    assert piece.trained[-1]


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("Q {{ instruction }}\nA {{ output }}\nend", "Q why?\nA "),
        ("Q {{ instruction }}{% if input %} ({{ input }}){% endif %}: {{ output | trim | upper }}", "Q why?: "),
        ("{{ instruction }}{% generation %}: {{ output }}{% endgeneration %}", "why?"),
        ("{{ input }} => {{ label }}", "why? => "),
        ("<{{ text }}>", "<why?"),
        ("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}", "<user>why?\n<assistant>"),
        ("{% for m in messages %}{{ m.content }}|{% endfor %}{% if add_generation_prompt %}A:{% endif %}", "why?|A:"),
    ],
)
def test_a_prompt_ends_where_the_answer_begins(own: Own, bpe: Any, template: str, prompt: str) -> None:
    assert prompt_text(own(template), bpe, "why?") == prompt


def test_a_system_message_is_used_or_refused(own: Own, bpe: Any) -> None:
    assert prompt_text(own("{% for m in messages %}{{ m.content }}|{% endfor %}"), bpe, "why?", "S") == "S|why?|"
    with pytest.raises(DataError, match=r"generation\.system is not used"):
        prompt_text(own("{{ instruction }}>{{ output }}"), bpe, "why?", "S")


def test_newlines_written_as_a_mark_come_back(own: Own, bpe: Any) -> None:
    ids = bpe("one<NL>two", add_special_tokens=False)["input_ids"]
    assert decode_answer(own("{{ instruction }}>{{ output | replace('\\n', '<NL>') }}"), bpe, ids) == "one\ntwo"
    assert decode_answer(own("{{ instruction }}>{{ output }}"), bpe, ids) == "one<NL>two"


@pytest.mark.parametrize(
    ("template", "example", "line", "message"),
    [
        ("Q\n\n{{ instrution }} {{ output }}", ROW, 3, 'no variable "instrution"'),
        ("Q\n{{ instruction } {{ output }}", ROW, 2, "unexpected '}'"),
        ("{% if input %}\n{{ output }}\n", ROW, 2, "Unexpected end of template"),
        ("{% for m in messages %}\n{{ m.contnt }}\n{% endfor %}", TALK, 2, "has no attribute 'contnt'"),
        ("a\nb\n{{ 1 / 0 }}{{ output }}", ROW, 3, "division by zero"),
        ("{{ output }}\n{{ ''.__class__.__mro__ }}", ROW, 2, "unsafe"),
        ("{{ output }}\n{{ messages.append(1) }}", ROW, 2, "not safe|unsafe"),
        ("{% include '/etc/passwd' %}{{ output }}", ROW, 1, "no loader"),
        ("{{ output }}{% for i in range(9999999) %}x{% endfor %}", ROW, 1, "Range too big"),
        ("{{ output }}\n\n{{ raise_exception('only short rows') }}", ROW, 3, "only short rows"),
        ("{{ output | nothing_of_the_kind }}", ROW, 1, "No filter named"),
        ("{{ instruction }}", ROW, None, "never writes an answer"),
        ("{{ instruction }}{% if input %}{{ output }}{% endif %}", ROW, None, "leaves this row's answer out"),
        ("{{ instruction }}{{ output | length }}{{ output }}", ROW, None, "cannot be told from the rest"),
        ("{{ instruction }}>{{ output }}", TALK, None, "more than one exchange"),
        ("{{ instruction }}>{{ output }}", PLAIN, None, "plain text"),
        ("{{ text }}", ROW, None, "no text"),
        ("{% for m in messages %}\n{{ m.content }}{{ raise_exception('no') }}{% endfor %}{{ add_generation_prompt }}",
         TALK, 2, "no"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_and_line(
    own: Own, bpe: Any, template: str, example: Example, line: int | None, message: str
) -> None:
    path = own(template)
    with pytest.raises(DataError, match=message) as refused:
        renderer(path, copy.deepcopy(bpe))(example)
    assert refused.value.place == (f"{path}:{line}" if line else path)
    assert refused.value.hint


def test_a_row_that_breaks_a_template_is_named(own: Own, bpe: Any) -> None:
    render = renderer(own("{{ output.split(':')[1].strip() }}\n{{ output }}"), bpe)
    with pytest.raises(DataError, match=r"rows\.csv, row 2"):
        render(ROW)


def test_a_path_that_is_no_file_suggests_the_nearest(own: Own, bpe: Any, tmp_path: Path) -> None:
    own("{{ output }}")
    with pytest.raises(DataError, match="no template") as refused:
        renderer("owm.jinja", bpe, tmp_path)
    assert refused.value.hint == "did you mean own.jinja?"
    assert renderer("own.jinja", bpe, tmp_path)(ROW).text == "as said", "relative to the preset"


def test_a_file_from_windows_reads_the_same(own: Own, bpe: Any, tmp_path: Path) -> None:
    text = "Q {{ instruction }}\r\n{% if input %}\r\n{{ input }}\r\n{% endif %}\r\nA {{ output }}\r\n"
    (tmp_path / "dos.jinja").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert renderer("dos.jinja", bpe, tmp_path)(ROW).text == "Q do it\nA as said"


def test_a_models_own_template_in_a_file_is_that_template(bpe: Any, own: Own) -> None:
    tokenizer = copy.deepcopy(bpe)
    tokenizer.chat_template = None
    render = renderer(own(bpe.chat_template), tokenizer)
    assert render(TALK) == renderer("chat", bpe)(TALK)
    assert tokenizer.chat_template == bpe.chat_template, "it is saved with the result"
    kept = copy.deepcopy(bpe)
    renderer(own("{{ instruction }}>{{ output }}"), kept)
    assert kept.chat_template == bpe.chat_template
