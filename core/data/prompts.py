"""A prompt as the model saw its like in training, and its answer as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmtui.core.data.rendered import Rendered
from llmtui.core.data.rows import Example, Turn
from llmtui.core.data.templates import NEWLINE_MARK, own_template, prompt_of
from llmtui.core.data.tokens import encode_batch, special_tokens, with_special_tokens
from llmtui.core.errors import DataError


def prompt_text(
    template: str, tokenizer: Any, prompt: str, system: str | None = None, base_folder: Path | None = None
) -> str:
    """The text up to where the answer begins.

    Args:
        system: a system message, for templates that have a place for one.
        base_folder: what the path of a template of one's own is relative to.

    Raises:
        DataError: the template cannot ask this.
    """
    if template in ("alpaca", "rinna"):
        return prompt_of(Example("prompt", instruction=prompt), template)
    if template == "text":
        return prompt
    if template == "chat" or template.startswith("chat:"):
        return _asked(template, tokenizer, prompt, system)
    return own_template(template, tokenizer, base_folder).prompt(prompt, system)


def _asked(template: str, tokenizer: Any, prompt: str, system: str | None) -> str:
    from llmtui.core.data.chat_templates import tokenizer_chat, use_chat_template
    from llmtui.core.data.sandbox import JinjaError

    use_chat_template(template, tokenizer)
    turns = ([Turn("system", system)] if system else []) + [Turn("user", prompt)]
    try:
        return tokenizer_chat(tokenizer).render(turns, ask=True)
    except JinjaError as error:
        hint = "remove generation.system" if system else "use another template"
        raise DataError(f"the chat template refuses the prompt: {error.message}", place="dataset.template",
                        hint=hint) from error  # fmt: skip


def prompt_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a prompt, begun as rows are in training and without an end; never empty."""
    item = Rendered(text, (), append_eos=False)
    ids, _ = with_special_tokens(*encode_batch(tokenizer, [item], masked=False)[0], item, special_tokens(tokenizer))
    if ids:
        return ids
    begin = tokenizer.bos_token_id
    return [begin if begin is not None else tokenizer.eos_token_id or 0]


def decode_answer(template: str, tokenizer: Any, ids: list[int], base_folder: Path | None = None) -> str:
    """Generated ids as text, without special tokens; `<NL>` is a newline again where the template writes it so."""
    text = str(tokenizer.decode(ids, skip_special_tokens=True))
    return text.replace(NEWLINE_MARK, "\n") if marks_newlines(template, tokenizer, base_folder) else text


def marks_newlines(template: str, tokenizer: Any, base_folder: Path | None) -> bool:
    """Whether a template writes newlines as `<NL>`."""
    if template in ("alpaca", "rinna", "text"):
        return template == "rinna"
    if template == "chat" or template.startswith("chat:"):
        return NEWLINE_MARK in str(getattr(tokenizer, "chat_template", ""))
    return NEWLINE_MARK in own_template(template, tokenizer, base_folder).text.source
