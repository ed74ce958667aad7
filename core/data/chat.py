"""A chat template applied to conversations, with the spans of every answer.

An answer begins where the model is asked to speak (the template's generation prompt) and ends with the token that ends
its turn. Templates that change earlier turns (Qwen3 takes the thoughts out, many trim) are followed exactly or refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from llmtui.core.data.answer_spans import answer_ends, answer_spans, free_marks, merged, spans_of_marks
from llmtui.core.data.rendered import Rendered, Span
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.sandbox import JinjaError, JinjaText
from llmtui.core.errors import DataError

_ROLES: Final = "check the order of roles, and whether the template has a place for a system message"


class Chat:
    """A chat template with a tokenizer's special tokens.

    Args:
        text: the compiled template.
        special: the variables every template sees: bos_token, eos_token and the like.
        enders: texts of tokens that may end a turn.
        file: the template's file, when it has one, for errors.
    """

    def __init__(self, text: JinjaText, special: Mapping[str, str], enders: Sequence[str], file: str = "") -> None:
        self.text = text
        self.special = dict(special)
        self.enders = sorted((ender for ender in enders if ender), key=len, reverse=True)
        self.file = file

    def render(self, turns: Sequence[Turn], *, ask: bool, marks: tuple[str, str] | None = None) -> str:
        """The conversation as text; `ask` ends where the assistant's answer begins.

        Raises:
            JinjaError: the template refuses it.
        """
        messages = [{"role": turn.role, "content": turn.content} for turn in turns]
        given = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": ask}
        return self.text.render({**given, **self.special}, marks)

    def rendered(self, example: Example, turns: Sequence[Turn], masked: bool) -> Rendered:
        """An example's conversation.

        Raises:
            DataError: the template refuses it, or hides where the answers are.
        """
        turns = [self._without_end(turn) for turn in turns]
        try:
            whole = self.render(turns, ask=False)
            spans = self._spans(turns, whole) if masked else ((0, len(whole)),)
        except JinjaError as error:
            self._refuse(f"the chat template refuses the conversation: {error.message}", error.line, example)
        if spans is None:
            message = "the chat template changes earlier turns, so answers cannot be told apart"
            self._refuse(message, None, example, "use train_on: everything, or another template")
        if not spans and masked and any(turn.role == "assistant" and turn.content for turn in turns):
            message = "the chat template leaves the answers out"
            self._refuse(message, None, example, "use another template")
        return self._ended(whole, spans, turns, example.place)

    def _refuse(
        self,
        message: str,
        line: int | None,
        example: Example,
        hint: str = _ROLES,
    ) -> NoReturn:
        place = example.place
        if self.file:
            place, message = f"{self.file}:{line}" if line else self.file, f"{message} ({example.place})"
        raise DataError(message, place=place, hint=hint)

    def _without_end(self, turn: Turn) -> Turn:
        """An answer that was written with the end token gets it from the template alone."""
        end = self.special.get("eos_token", "")
        if turn.role == "assistant" and end and turn.content.endswith(end) and len(turn.content) > len(end):
            return Turn(turn.role, turn.content.removesuffix(end))
        return turn

    def _ended(self, whole: str, spans: tuple[Span, ...], turns: Sequence[Turn], place: str) -> Rendered:
        """A template that ends the last answer with no token at all gets the end token."""
        if turns[-1].role != "assistant" or whole.rstrip().endswith(tuple(self.enders)):
            return Rendered(whole, spans, append_eos=False, place=place)
        if spans:
            spans = (*spans[:-1], (spans[-1][0], len(whole)))  # what leads to the end is learned with it
        return Rendered(whole, spans, append_eos=True, place=place)

    # --- where the answers are ------------------------------------------------------------------------

    def _spans(self, turns: Sequence[Turn], whole: str) -> tuple[Span, ...] | None:
        """All answers; None when they cannot be told apart."""
        if self.text.marks_answers:
            return self._generation_blocks(turns, whole)
        numbers = [number for number, turn in enumerate(turns) if turn.role == "assistant"]
        if not numbers:
            return ()

        def with_answers(answers: Sequence[str]) -> str:
            changed = list(turns)
            for number, answer in zip(numbers, answers, strict=True):
                changed[number] = Turn("assistant", answer)
            return self.render(changed, ask=False)

        answers = [turns[number].content for number in numbers]
        exact = answer_spans(with_answers, answers, whole)
        found = exact or answer_ends(with_answers, answers, whole)
        if found is None or not all(found):
            return self._growing(turns, numbers, whole)
        tail = self._tail(turns, numbers[-1], whole, found[-1][-1][1])
        spans = []
        for number, places in zip(numbers, found, strict=True):
            end = places[-1][1]
            begin = self._asked(turns, number, whole, places[0][0])
            if begin is None and exact is None:  # only the answer's end is known
                return None
            begin = places[0][0] if begin is None else begin
            spans.append((begin, self._turn_end(whole, end, tail, is_last=number == len(turns) - 1)))
        return merged(spans)

    def _generation_blocks(self, turns: Sequence[Turn], whole: str) -> tuple[Span, ...] | None:
        begin, end = free_marks(2, whole)
        found = spans_of_marks(self.render(turns, ask=False, marks=(begin, end)), [(begin, end)])
        return merged(found[1][0]) if found is not None and found[0] == whole else None

    def _asked(self, turns: Sequence[Turn], number: int, whole: str, latest: int) -> int | None:
        """Where the model is asked to speak; None when the template asks otherwise than it writes."""
        try:
            before = self.render(turns[:number], ask=True)
        except JinjaError:
            return None
        return len(before) if len(before) <= latest and whole.startswith(before) else None

    def _tail(self, turns: Sequence[Turn], number: int, whole: str, end: int) -> str:
        """What the template writes behind a conversation's last answer."""
        if number == len(turns) - 1:
            return whole[end:].rstrip("\n")
        mark = free_marks(1, whole)[0]
        try:
            closed = self.render([*turns[:number], Turn("assistant", turns[number].content + mark)], ask=False)
        except JinjaError:
            return ""
        return closed.rpartition(mark)[2].rstrip("\n") if mark in closed else ""

    def _turn_end(self, whole: str, end: int, tail: str, is_last: bool) -> int:
        if is_last:
            # The newline that some templates put after the end-of-turn token is nothing to learn.
            return max(end, len(whole.rstrip("\n")))
        # A template may close the whole conversation with one more token (Phi-3).
        closed = next((tail.removesuffix(e).rstrip("\n") for e in self.enders if tail.endswith(e)), "")
        for ending in (tail, closed):
            if ending and whole.startswith(ending, end):
                return end + len(ending)
        after = whole[end:].lstrip(" ")
        ender = next((e for e in self.enders if after.startswith(e)), "")
        return len(whole) - len(after) + len(ender) if ender else end

    def _growing(self, turns: Sequence[Turn], numbers: Sequence[int], whole: str) -> tuple[Span, ...] | None:
        """Answers as what each turn adds to the text before it."""
        spans = []
        for number in numbers:
            before = self.render(turns[:number], ask=True)
            after = self.render(turns[: number + 1], ask=False).rstrip("\n")
            if not whole.startswith(before) or not whole.startswith(after) or len(after) < len(before):
                return None
            spans.append((len(before), len(after)))
        return merged(spans)
