"""Templates: an example becomes one text with the spans of its answers.

Sources: `alpaca` is the English prompt of Stanford Alpaca; `rinna` the Japanese prompt that rinna's instruction models
are trained with in the published recipe, newlines written as `<NL>`; `chat` the tokenizer's own chat template,
`chat:NAME` one of ours; anything else is the path of a template of one's own.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llmtui.core.data.rendered import Render, Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.errors import DataError
from llmtui.core.preset.schema import CHAT_TEMPLATES, TEMPLATES

if TYPE_CHECKING:
    from llmtui.core.data.chat import Chat
    from llmtui.core.data.own_template import OwnTemplate

ALPACA_LONG: Final = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n"
)
ALPACA_SHORT: Final = (
    "Below is an instruction that describes a task. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:\n"
)
RINNA_LONG: Final = "### 指示:\n{instruction}\n\n### 入力:\n{input}\n\n### 回答:\n"
RINNA_SHORT: Final = "### 指示:\n{instruction}\n\n### 回答:\n"
NEWLINE_MARK: Final = "<NL>"


def _fill(template: str, instruction: str, extra: str) -> str:
    # Not str.format: data may hold braces.
    head, _, tail = template.partition("{instruction}")
    if "{input}" in tail:
        middle, _, tail = tail.partition("{input}")
        return f"{head}{instruction}{middle}{extra}{tail}"
    return f"{head}{instruction}{tail}"


def prompt_of(example: Example, template: str) -> str:
    """The text up to where the answer begins, for `alpaca` and `rinna`; the short form without an input."""
    long, short = (ALPACA_LONG, ALPACA_SHORT) if template == "alpaca" else (RINNA_LONG, RINNA_SHORT)
    text = _fill(long if example.input else short, example.instruction, example.input)
    return text.replace("\n", NEWLINE_MARK) if template == "rinna" else text


def renderer(template: str, tokenizer: Any, base_folder: Path | None = None, *, masked: bool = True) -> Render:
    """The function that renders examples. `chat:NAME` gives the tokenizer that chat template (it is saved with it).

    Args:
        base_folder: what the path of a template of one's own is relative to.
        masked: whether the answers' spans are needed (`train_on: response`); without, the whole text is one span.

    Raises:
        DataError: the template is unknown or broken, or is `chat` and the tokenizer has none.
    """
    if template in ("alpaca", "rinna"):
        return lambda example: _instruction(example, template, masked)
    if template == "text":
        return lambda example: _plain(example, masked)
    from llmtui.core.data.chat_templates import tokenizer_chat, use_chat_template

    use_chat_template(template, tokenizer, base_folder)
    if template == "chat" or template.startswith("chat:"):
        chat = tokenizer_chat(tokenizer)
        return lambda example: _chat(chat, example, masked)
    own = own_template(template, tokenizer, base_folder)
    return lambda example: own.rendered(example, masked)


def template_source(template: str, tokenizer: Any, base_folder: Path | None = None) -> str:
    """Everything that decides what a template writes besides the row: its own text and the end token it looks at.

    Raises:
        DataError: as `renderer` does.
    """
    if template in ("alpaca", "rinna"):
        return ALPACA_LONG + ALPACA_SHORT if template == "alpaca" else RINNA_LONG + RINNA_SHORT
    if template == "text":
        return template
    from llmtui.core.data.chat_templates import use_chat_template

    use_chat_template(template, tokenizer, base_folder)
    if template == "chat" or template.startswith("chat:"):
        return str(tokenizer.get_chat_template()) + repr(tokenizer.special_tokens_map)
    return own_template(template, tokenizer, base_folder).text.source + repr(tokenizer.special_tokens_map)


def own_template(template: str, tokenizer: Any, base_folder: Path | None = None) -> OwnTemplate:
    """The user's own template at a path.

    Raises:
        DataError: there is no such template and no such file, or it is broken.
    """
    from llmtui.core.data.own_template import OwnTemplate

    path = (base_folder or Path()) / Path(template).expanduser()
    if not path.is_file():
        names = [*TEMPLATES, *(f"chat:{name}" for name in CHAT_TEMPLATES)]
        if path.parent.is_dir():
            names += [str(Path(template).parent / file.name) for file in path.parent.iterdir() if file.is_file()]
        near = get_close_matches(template, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(TEMPLATES)}, or a jinja file"
        message = f'there is no template "{template}", and no file of that name'
        raise DataError(message, place="dataset.template", hint=hint)
    return OwnTemplate(path, tokenizer)


def _instruction(example: Example, template: str, masked: bool) -> Rendered:
    example = _as_instruction(example)
    prompt = prompt_of(example, template)
    answer = _answer(example)
    answer = answer.replace("\n", NEWLINE_MARK) if template == "rinna" else answer
    text = prompt + answer
    return Rendered(text, ((len(prompt) if masked else 0, len(text)),), append_eos=True, place=example.place)


def _answer(example: Example) -> str:
    return example.output or example.label or ""


def _as_instruction(example: Example) -> Example:
    """A conversation of one exchange as an instruction; its system message stands before the question."""
    if example.text is not None:
        raise DataError("alpaca and rinna need an instruction and an output, and this is plain text",
                        place=example.place, hint="use template: text")  # fmt: skip
    if not example.turns:
        return example
    said = [turn for turn in example.turns if turn.role != "system"]
    if [turn.role for turn in said] != ["user", "assistant"]:
        raise DataError("alpaca and rinna hold one exchange, this conversation has more", place=example.place,
                        hint="use template: chat")  # fmt: skip
    before = [turn.content for turn in example.turns if turn.role == "system" and turn.content]
    asked = "\n\n".join([*before, said[0].content])
    return Example(example.place, instruction=asked, output=said[1].content)


def _plain(example: Example, masked: bool) -> Rendered:
    """A text is learned whole; of a labelled one the label is the answer."""
    if example.text is not None:
        text = example.text
    elif example.turns:
        raise DataError("template text needs a text, not messages", place=example.place, hint="use template: chat")
    else:
        text = "\n".join(part for part in (example.instruction, example.input, _answer(example)) if part)
    begin = len(text) - len(example.label) if example.label and masked else 0
    return Rendered(text, ((begin, len(text)),), append_eos=True, place=example.place)


def turns_of(example: Example) -> tuple[Turn, ...]:
    """An example as a conversation; the input follows the instruction after an empty line."""
    if example.turns:
        return example.turns
    asked = "\n\n".join(part for part in (example.instruction, example.input) if part)
    return (Turn("user", asked), Turn("assistant", _answer(example)))


def _chat(chat: Chat, example: Example, masked: bool) -> Rendered:
    if example.text is not None:
        raise DataError("template chat needs messages or instruction and output", place=example.place,
                        hint="use template: text for plain text")  # fmt: skip
    return chat.rendered(example, turns_of(example), masked)
