"""A prompt as the model saw its like in training, and its answer as text."""

from __future__ import annotations

from typing import Any

from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import NEWLINE_MARK, apply_chat, prompt_of


def prompt_text(template: str, tokenizer: Any, prompt: str, system: str | None = None) -> str:
    """The text up to where the answer begins."""
    if template in ("alpaca", "rinna"):
        return prompt_of(Example("prompt", instruction=prompt), template)
    if template == "chat":
        turns = ([Turn("system", system)] if system else []) + [Turn("user", prompt)]
        return apply_chat(tokenizer, turns, ask=True)
    return prompt


def decode_answer(template: str, tokenizer: Any, ids: list[int]) -> str:
    """Generated ids as text, without special tokens; `<NL>` becomes a newline again for `rinna`."""
    text = str(tokenizer.decode(ids, skip_special_tokens=True))
    return text.replace(NEWLINE_MARK, "\n") if template == "rinna" else text
