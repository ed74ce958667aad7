"""Where answers stand in a rendered text, to the character.

Nothing is searched: the template is rendered again with characters in or around the answers that occur nowhere else,
and the result is only believed when it is the original text but for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from llmtui.core.data.rendered import Span
from llmtui.core.data.sandbox import JinjaError

_FIRST_MARK: Final = 0x100000  # Supplementary Private Use Area-B: no case, no width, in nobody's text
RenderWith = Callable[[Sequence[str]], str]
"""The template's text with these answers in place of the example's."""


def free_marks(count: int, text: str) -> list[str]:
    """Characters that do not occur in a text."""
    used = set(text) if max(text, default="") >= chr(_FIRST_MARK) else ()
    marks: list[str] = []
    code = _FIRST_MARK
    while len(marks) < count:
        if chr(code) not in used:
            marks.append(chr(code))
        code += 1
    return marks


def spans_of_marks(marked: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, list[list[Span]]] | None:
    """The text without marks and, for each pair, the spans between them; None when marks do not come in pairs."""
    kind = {mark: (number, which) for number, pair in enumerate(pairs) for which, mark in enumerate(pair)}
    found: list[list[Span]] = [[] for _ in pairs]
    opened: dict[int, int] = {}
    parts: list[str] = []
    at, length = 0, 0
    for match in re.finditer(f"[{''.join(kind)}]", marked):
        here = match.start()
        parts.append(marked[at:here])
        length += here - at
        at = here + 1
        number, which = kind[match[0]]
        if which == 0 and number not in opened:
            opened[number] = length
        elif which == 1 and number in opened:
            found[number].append((opened.pop(number), length))
        else:
            return None
    if opened:
        return None
    parts.append(marked[at:])
    return "".join(parts), found


def answer_spans(render: RenderWith, answers: Sequence[str], whole: str) -> list[list[Span]] | None:
    """For each answer the spans it takes up in `whole`; None when the template hides them.

    Three ways, the first that proves itself: marks around the answers; an answer replaced by a mark (the template may
    transform it: trim, upper); marks around the answers inside their outer blanks.
    """
    marks = free_marks(2 * len(answers), whole + "".join(answers))
    pairs = [(marks[2 * i], marks[2 * i + 1]) for i in range(len(answers))]
    around = [f"{begin}{answer}{end}" for answer, (begin, end) in zip(answers, pairs, strict=True)]
    found = _proven(render, around, pairs, whole)
    if found is None:
        found = _replaced(render, answers, marks[0], whole)
    if found is None:
        inside = [_inside(answer, pair) for answer, pair in zip(answers, pairs, strict=True)]
        found = _proven(render, inside, pairs, whole)
    return found


def answer_ends(render: RenderWith, answers: Sequence[str], whole: str) -> list[list[Span]] | None:
    """For each answer an empty span at its end, for templates that take answers apart (thoughts and the rest)."""
    marks = free_marks(len(answers), whole)
    text = _attempt(render, [answer + mark for answer, mark in zip(answers, marks, strict=True)])
    parts = re.split(f"[{''.join(marks)}]", text) if text is not None else []
    if "".join(parts) != whole or len(parts) != len(answers) + 1:
        return None
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(answers))]
    return [[(end, end)] for end in ends]


def _inside(answer: str, pair: tuple[str, str]) -> str:
    core = answer.strip()
    at = answer.find(core)
    return f"{answer[:at]}{pair[0]}{core}{pair[1]}{answer[at + len(core) :]}"


def _proven(
    render: RenderWith, answers: Sequence[str], pairs: Sequence[tuple[str, str]], whole: str
) -> list[list[Span]] | None:
    text = _attempt(render, answers)
    found = spans_of_marks(text, pairs) if text is not None else None
    return found[1] if found is not None and found[0] == whole else None


def _attempt(render: RenderWith, answers: Sequence[str]) -> str | None:
    try:
        return render(answers)
    except JinjaError:  # it may look into the answers, and refuse these
        return None


def _replaced(render: RenderWith, answers: Sequence[str], mark: str, whole: str) -> list[list[Span]] | None:
    found: list[list[Span]] = []
    for number in range(len(answers)):
        text = _attempt(render, [*answers[:number], mark, *answers[number + 1 :]])
        if text is None:
            return None
        before, *others = text.split(mark)
        if not others:
            found.append([])
            continue
        if len(others) > 1:
            return None
        end = len(whole) - len(others[0])
        if not (whole.startswith(before) and whole.endswith(others[0]) and len(before) <= end):
            return None
        found.append([(len(before), end)])
    return found


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, those that touch as one, empty ones left out."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if begin == end:
            continue
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return tuple(joined)
