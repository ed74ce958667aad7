"""Exact match of labelled rows: the model answers each prompt greedily, and the answer must be the label's name.

This is what a user of the model gets, so nothing is chosen for it: an answer that goes on after the name, or is never
ended, is wrong. A base model that was not told the names therefore scores near 0. What a template writes between the
name and the end token belongs to the answer, as in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from llmtui.core.data import TokenRows, decode_answer
from llmtui.core.data.answers import Answers
from llmtui.core.data.tokens import special_tokens
from llmtui.core.runs import events as ev
from llmtui.core.worker.failures import is_out_of_memory


@dataclass(frozen=True, slots=True)
class LabelScores:
    """Share of rows answered with exactly their label (0..1), and the same by label."""

    exact_match: float | None
    by_label: dict[str, ev.LabelScore]


@dataclass
class LabelScorer:
    """Answers labelled rows with a model.

    Args:
        positions: the model's longest sequence; None when it has no limit.
        base_folder: what the path of a template of one's own is relative to.
    """

    model: Any
    tokenizer: Any
    template: str
    pad_id: int
    device: torch.device
    autocast: Callable[[], AbstractContextManager[Any]]
    positions: int | None = None
    base_folder: Any = None

    def score(
        self, rows: TokenRows, answers: Answers, *, batch_size: int, on_progress: Callable[[int, int], None]
    ) -> LabelScores:
        """Answer every row, longest prompt first; halves the batch when memory runs out. Draws no random numbers."""
        order = sorted(range(len(answers)), key=lambda row: (-answers.starts[row], row))
        ends = sorted(special_tokens(self.tokenizer).ends)
        wanted, longest = self._wanted(rows, answers, ends)
        total, right = [0] * len(answers.names), [0] * len(answers.names)
        was_training, used_cache = self.model.training, self.model.config.use_cache
        self.model.eval()
        self.model.config.use_cache = True
        done = 0
        try:
            while done < len(order):
                chosen = order[done : done + batch_size]
                prompts = [rows[row]["input_ids"][: answers.starts[row]] for row in chosen]
                said = self._attempt(prompts, longest, ends, last=batch_size == 1)
                if said is None:
                    batch_size = max(1, batch_size // 2)
                    if self.device.type == "cuda":
                        torch.cuda.empty_cache()
                    continue
                for row, text in zip(chosen, said, strict=True):
                    label = answers.labels[row]
                    total[label] += 1
                    right[label] += text is not None and self._is(text, label, wanted, ends)
                done += len(chosen)
                on_progress(done, len(order))
        finally:
            self.model.config.use_cache = used_cache
            self.model.train(was_training)
        by_label = {
            name: ev.LabelScore(rows=rows_of, exact_match=hits / rows_of)
            for name, rows_of, hits in zip(answers.names, total, right, strict=True)
            if rows_of
        }
        return LabelScores(sum(right) / done if done else None, by_label)

    def _wanted(self, rows: TokenRows, answers: Answers, ends: Sequence[int]) -> tuple[list[str], int]:
        """For each label the text of its whole answer, and the tokens of the longest one with its end and one more."""
        wanted = dict[int, list[int]]()
        for row in range(len(answers)):
            if answers.labels[row] in wanted:
                continue
            answer = rows[row]["input_ids"][answers.starts[row] :]
            at = next((place for place, token in enumerate(answer) if token in ends), None)
            if at is not None:  # else it is cut
                wanted[answers.labels[row]] = answer[:at]
                if len(wanted) == len(answers.names):
                    break
        texts, longest = [], 1
        for number, name in enumerate(answers.names):
            ids = wanted.get(number)
            texts.append(name if ids is None else self._text(ids))
            longest = max(longest, len(self._ids(name) if ids is None else ids))
        return texts, longest + 2

    def _is(self, text: str, label: int, wanted: Sequence[str], ends: Sequence[int]) -> bool:
        if ends:
            return text == wanted[label]
        # A model without an end token goes on: its answer is the longest name that its text begins with.
        begun = [name for name in wanted if text.startswith(name)]
        return bool(begun) and max(begun, key=len) == wanted[label]

    def _attempt(
        self, prompts: list[list[int]], longest: int, ends: Sequence[int], last: bool
    ) -> list[str | None] | None:
        """The answers; None when they do not fit and a smaller batch may."""
        try:
            return self._answer(prompts, longest, ends)
        except RuntimeError as error:
            if last or not is_out_of_memory(error):
                raise
        return None

    def _answer(self, prompts: list[list[int]], longest: int, ends: Sequence[int]) -> list[str | None]:
        """What the model says to each prompt; None where it does not come to an end."""
        width = max(map(len, prompts))
        if self.positions is not None:
            longest = min(longest, self.positions - width)
        if longest < 1:
            return [None] * len(prompts)
        ids = torch.tensor([[self.pad_id] * (width - len(p)) + p for p in prompts], device=self.device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self.device)
        with torch.no_grad(), self.autocast():
            out = self.model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=longest, min_new_tokens=0, do_sample=False,
                num_beams=1, repetition_penalty=1.0, no_repeat_ngram_size=0, use_cache=True,
                eos_token_id=list(ends) or None, pad_token_id=self.pad_id,
            )  # fmt: skip
        return [self._said(made, ends) for made in out[:, width:].tolist()]

    def _said(self, made: list[int], ends: Sequence[int]) -> str | None:
        at = next((place for place, token in enumerate(made) if token in ends), None)
        if at is None and ends:
            return None
        return self._text(made[:at])

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _text(self, ids: list[int]) -> str:
        return decode_answer(self.template, self.tokenizer, ids, self.base_folder).strip()
