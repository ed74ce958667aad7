"""A prompt as the model saw its like in training, and its answer as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import NEWLINE_MARK, apply_chat, prompt_of
from llmtui.core.data.tokens import encode_batch, special_tokens, with_special_tokens


def prompt_text(
    template: str, tokenizer: Any, prompt: str, system: str | None = None, base_folder: Path | None = None
) -> str:
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


def prompt_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a prompt, begun as rows are in training and without an end; never empty."""
    item = Rendered(text, (), append_eos=False)
    ids, _ = with_special_tokens(*encode_batch(tokenizer, [item], masked=False)[0], item, special_tokens(tokenizer))
    if ids:
        return ids
    begin = tokenizer.bos_token_id
    return [begin if begin is not None else tokenizer.eos_token_id or 0]
