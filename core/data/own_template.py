"""A template of one's own: a Jinja file with `instruction`, `input`, `output`, `messages`, `text` and `label`.

`bos_token` and `eos_token` (also `bos`, `eos`) are the tokenizer's; the end token is added where the file writes none.
What is learned with `train_on: response` is what the file makes of the answer, or what stands in its
`{% generation %}` blocks. A file that uses `messages` and `add_generation_prompt` is a chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from jinja2 import nodes

from llmtui.core.data.answer_spans import answer_spans, free_marks, merged, spans_of_marks
from llmtui.core.data.chat import Chat
from llmtui.core.data.rendered import Rendered, Span
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.sandbox import JinjaError, JinjaText
from llmtui.core.data.text_files import decode_text
from llmtui.core.data.tokens import turn_enders
from llmtui.core.errors import DataError

_ROW: Final = ("instruction", "input", "output", "messages", "text", "label")
_ANSWERS: Final = frozenset({"output", "messages", "text", "label"})
_TOKENS: Final = ("bos_token", "eos_token", "bos", "eos", "add_generation_prompt")
# What chat templates ask for and may do without.
_ABSENT: Final = ("tools", "documents", "enable_thinking", "tools_in_user_message", "custom_tools", "date_string")


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer as it is put into the variables: as `output`, as `label`, as `text`, or as the n-th message."""

    text: str
    variables: tuple[str, ...] = ()
    message: int | None = None


class OwnTemplate:
    """A template file with a tokenizer's special tokens.

    Raises:
        DataError: it is no template, or uses a variable that there is none of; with file and line.
    """

    def __init__(self, path: Path, tokenizer: Any) -> None:
        self.path = path
        try:
            source, _ = decode_text(path.read_bytes(), path.name)
            self.text = JinjaText(source.replace("\r\n", "\n"), strict=True)
        except OSError as error:
            raise DataError(f"the template cannot be read: {error.strerror}", place=str(path),
                            hint="check dataset.template") from error  # fmt: skip
        except JinjaError as error:
            self._refuse(error, "mend the template")
        self.uses = self.text.undeclared
        self._check_names()
        named = dict(getattr(tokenizer, "special_tokens_map", {}))
        begin, end = named.get("bos_token", ""), named.get("eos_token", "")
        self.special = {**named, "bos_token": begin, "eos_token": end, "bos": begin, "eos": end}
        self.enders = sorted(turn_enders(tokenizer), key=len, reverse=True) if tokenizer is not None else []
        self.is_chat = {"messages", "add_generation_prompt"} <= self.uses
        self.is_portable = not self.uses & {"instruction", "input", "output", "text", "label", "bos", "eos"}
        """Whether it needs nothing that transformers does not give a chat template."""
        self.chat = Chat(self.text, self.special, self.enders, str(path))

    def _refuse(self, error: JinjaError, hint: str, example: Example | None = None) -> NoReturn:
        place = f"{self.path}:{error.line}" if error.line else str(self.path)
        message = f"{error.message} ({example.place})" if example is not None else error.message
        raise DataError(message, place=place, hint=hint) from error

    def _check_names(self) -> None:
        known = {*_ROW, *_TOKENS, *_ABSENT, "raise_exception", "strftime_now", "namespace", "dict", "range", "lipsum",
                 "cycler", "joiner", "loop"}  # fmt: skip
        tested = {node.node.name for node in self.text.tree.find_all(nodes.Test)
                  if node.name in ("defined", "undefined") and isinstance(node.node, nodes.Name)}  # fmt: skip
        for name in self.text.tree.find_all(nodes.Name):
            if name.ctx == "load" and name.name in self.uses - known - tested:
                near = get_close_matches(name.name, _ROW + _TOKENS, n=1)
                hint = f"did you mean {near[0]}?" if near else f"use {', '.join(_ROW)}, bos_token, eos_token"
                self._refuse(JinjaError(f'there is no variable "{name.name}"', name.lineno), hint)
        if not self.uses & _ANSWERS:
            self._refuse(JinjaError("the template never writes an answer", None), "write {{ output }} or messages")

    # --- rendering ------------------------------------------------------------------------------------

    def rendered(self, example: Example, masked: bool) -> Rendered:
        """An example as this template writes it.

        Raises:
            DataError: with the template's file and line and the row.
        """
        example = self._fitting(example)
        if self.is_chat and example.text is None:
            return self.chat.rendered(example, _turns(example), masked)
        answers = _answers(example)
        try:
            whole = self._render(example, answers)
            spans = self._spans(example, answers, whole) if masked else ((0, len(whole)),)
        except JinjaError as error:
            self._refuse(error, "mend the template, or the row", example)
        return Rendered(whole, spans, append_eos=True, place=example.place)

    def _fitting(self, example: Example) -> Example:
        """The example with every variable that this template needs of it.

        Raises:
            DataError: a row of a kind that the template has no place for.
        """
        if example.text is not None:
            if "text" not in self.uses:
                self._unfit("the row is plain text, and the template does not use text", example)
            return example
        if not self.uses & {"output", "messages", "label"}:
            self._unfit("the row has no text, and the template uses nothing else", example)
        if not example.turns or "messages" in self.uses:
            return example
        said = [turn for turn in example.turns if turn.role != "system"]
        if [turn.role for turn in said] != ["user", "assistant"]:
            self._unfit("the conversation has more than one exchange, and the template does not use messages", example)
        return replace(example, instruction=said[0].content, output=said[1].content)

    def _unfit(self, message: str, example: Example) -> NoReturn:
        raise DataError(f"{message} ({example.place})", place=str(self.path), hint="use another template")

    def _render(self, example: Example, answers: Sequence[_Answer], marks: tuple[str, str] | None = None) -> str:
        turns = list(_turns(example))
        given: dict[str, Any] = {"instruction": example.instruction, "input": example.input, "output": "", "label": "",
                                 "text": ""}  # fmt: skip
        for answer in answers:
            given |= dict.fromkeys(answer.variables, answer.text)
            if answer.message is not None:
                turns[answer.message] = Turn("assistant", answer.text)
        given["messages"] = [{"role": turn.role, "content": turn.content} for turn in turns]
        given |= {"add_generation_prompt": False, **dict.fromkeys(_ABSENT), **self.special}
        return self.text.render(given, marks)

    def _spans(self, example: Example, answers: Sequence[_Answer], whole: str) -> tuple[Span, ...]:
        if self.text.marks_answers:
            begin, end = free_marks(2, whole)
            blocks = spans_of_marks(self._render(example, answers, (begin, end)), [(begin, end)])
            spans = merged(blocks[1][0]) if blocks is not None and blocks[0] == whole else None
        else:
            found = answer_spans(
                lambda texts: self._render(
                    example, [replace(a, text=text) for a, text in zip(answers, texts, strict=True)]
                ),
                [answer.text for answer in answers], whole,
            )  # fmt: skip
            ends = [(begin, self._with_end(whole, end)) for places in found or [] for begin, end in places]
            spans = merged(ends) if found is not None else None
        if spans is None:
            raise JinjaError("what the template makes of the answer cannot be told from the rest; put it into "
                             "{% generation %} … {% endgeneration %}, or use train_on: everything", None)  # fmt: skip
        if not spans:
            raise JinjaError("the template leaves this row's answer out", None)
        return spans

    def _with_end(self, whole: str, end: int) -> int:
        """The end token that the template writes right behind an answer is learned with it."""
        return end + len(next((ender for ender in self.enders if whole.startswith(ender, end)), ""))

    def prompt(self, prompt: str, system: str | None) -> str:
        """The text up to where the answer begins.

        Raises:
            DataError: the template has no such place, or none for the system message.
        """
        asked = Turn("user", prompt)
        turns = (Turn("system", system), asked) if system else (asked,)
        if system and "messages" not in self.uses:
            raise DataError("generation.system is not used by this template", place=str(self.path),
                            hint="remove it, or use messages in the template")  # fmt: skip
        try:
            if self.is_chat:
                return self.chat.render(turns, ask=True)
            return self._up_to_answer(prompt, turns)
        except JinjaError as error:
            self._refuse(error, "mend the template")

    def _up_to_answer(self, prompt: str, turns: tuple[Turn, ...]) -> str:
        mark, begin, end = free_marks(3, prompt)
        if "messages" in self.uses:
            example = Example("prompt", instruction=prompt, output=mark, turns=(*turns, Turn("assistant", mark)))
        elif self.uses & {"instruction", "input"}:
            asked = ("", prompt) if "instruction" not in self.uses else (prompt, "")
            example = Example("prompt", *asked, output=mark, label=mark)
        else:
            example = Example("prompt", text=prompt + mark)
        text = self._render(example, _answers(example), (begin, end))
        at = min((text.find(sign) for sign in (begin, mark) if sign in text), default=None)
        if at is None:
            raise JinjaError("the template leaves the answer out", None)
        return text[:at]


def _turns(example: Example) -> tuple[Turn, ...]:
    from llmtui.core.data.templates import turns_of

    return turns_of(example) if example.text is None else ()


def _answers(example: Example) -> list[_Answer]:
    """Everything in an example that is to be learned, with where it goes."""
    label = example.label if example.text is None else None
    label_answer = [] if label is None or label == example.output else [_Answer(label, ("label",))]
    if example.text is not None:
        return [_Answer(example.text, ("text",))]
    turns = _turns(example)
    numbers = [number for number, turn in enumerate(turns) if turn.role == "assistant"]
    if example.output and len(numbers) == 1:
        variables = ("output", "label") if label == example.output else ("output",)
        return [_Answer(example.output, variables, numbers[0]), *label_answer]
    return [*(_Answer(turns[number].content, (), number) for number in numbers), *label_answer]
