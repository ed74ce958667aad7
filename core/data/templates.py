"""Templates: an example becomes one text with the spans of its answers.

Sources: `alpaca` is the English prompt of Stanford Alpaca; `rinna` the Japanese prompt that rinna's instruction models
are trained with in the published recipe, newlines written as `<NL>`; `chat` the tokenizer's own chat template.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.errors import DataError

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
TEMPLATES: Final = ("alpaca", "rinna", "chat", "text")


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


def renderer(
    template: str, tokenizer: Any, base_folder: Path | None = None, *, masked: bool = True
) -> Callable[[Example], Rendered]:
    """The function that renders examples. `chat:NAME` gives the tokenizer that chat template (it is saved with it).

    Args:
        base_folder: what the path of a template of one's own is relative to.
        masked: whether the answers' spans are needed (`train_on: response`); without, the whole text is one span.

    Raises:
        DataError: the template is unknown, or is `chat` and the tokenizer has none.
    """
    if template in ("alpaca", "rinna"):
        return lambda example: _instruction(example, template)
    if template == "text":
        return _plain
    if template == "chat":
        if not getattr(tokenizer, "chat_template", None):
            raise DataError("the model's tokenizer has no chat template", place="dataset.template",
                            hint="use alpaca, rinna or text, or a model that has one")  # fmt: skip
        return lambda example: _chat(example, tokenizer)
    raise DataError(f'there is no template "{template}"', place="dataset.template", hint=f"use {', '.join(TEMPLATES)}")


def _instruction(example: Example, template: str) -> Rendered:
    if example.turns:
        example = _as_instruction(example)
    if example.text is not None:
        raise DataError(f"template {template} needs instruction and output", place=example.place,
                        hint="use template: text for plain text")  # fmt: skip
    prompt = prompt_of(example, template)
    answer = example.output.replace("\n", NEWLINE_MARK) if template == "rinna" else example.output
    return Rendered(prompt + answer, ((len(prompt), len(prompt) + len(answer)),), append_eos=True)


def _as_instruction(example: Example) -> Example:
    """A conversation of one exchange as an instruction."""
    said = [t for t in example.turns if t.role != "system"]
    if len(said) != 2:
        raise DataError("alpaca and rinna hold one exchange, this conversation has more", place=example.place,
                        hint="use template: chat")  # fmt: skip
    return Example(example.place, instruction=said[0].content, output=said[1].content)


def _plain(example: Example) -> Rendered:
    if example.text is not None:
        text = example.text
    elif example.turns:
        raise DataError("template text needs a text, not messages", place=example.place, hint="use template: chat")
    else:
        text = "\n".join(part for part in (example.instruction, example.input, example.output) if part)
    return Rendered(text, ((0, len(text)),), append_eos=True)


def turns_of(example: Example) -> tuple[Turn, ...]:
    """An example as a conversation; the input follows the instruction after an empty line."""
    if example.turns:
        return example.turns
    asked = f"{example.instruction}\n\n{example.input}" if example.input else example.instruction
    return (Turn("user", asked), Turn("assistant", example.output))


def apply_chat(tokenizer: Any, turns: Sequence[Turn], *, ask: bool) -> str:
    """The tokenizer's own template as text; `ask` ends where the assistant's answer begins."""
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=ask)
    return str(text)


def _chat(example: Example, tokenizer: Any) -> Rendered:
    if example.text is not None:
        raise DataError("template chat needs messages or instruction and output", place=example.place,
                        hint="use template: text for plain text")  # fmt: skip
    turns = turns_of(example)
    try:
        whole = apply_chat(tokenizer, turns, ask=False)
        spans = []
        for number, turn in enumerate(turns):
            if turn.role == "assistant":
                before = apply_chat(tokenizer, turns[:number], ask=True)
                after = apply_chat(tokenizer, turns[: number + 1], ask=False)
                spans.append(_span(whole, before, after, example))
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"the chat template refuses the conversation: {error}", place=example.place,
                        hint="check the order of roles") from error  # fmt: skip
    return Rendered(whole, tuple(spans), append_eos=False)


def _span(whole: str, before: str, after: str, example: Example) -> tuple[int, int]:
    if not whole.startswith(before) or not whole.startswith(after.rstrip("\n")):
        raise DataError("the chat template changes earlier turns, so answers cannot be told apart",
                        place=example.place, hint="use train_on: everything, or another template")  # fmt: skip
    # The newline that some templates put after the end-of-turn token is nothing to learn.
    end = len(after) - (len(after) - len(after.rstrip("\n")))
    return len(before), max(len(before), end)
