"""The tokenizer's chat template, or one of ours by name (`chat:chatml`) for a tokenizer that has none.

Ours are files in `chat_template_files/`, written for any tokenizer: an answer ends with its turn's mark and, when that
is not the end token itself, the end token, so that a model learns to stop whichever tokens it knows.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.chat import Chat
from llmtui.core.data.sandbox import JinjaError, JinjaText
from llmtui.core.data.templates import own_template
from llmtui.core.data.tokens import special_tokens, turn_enders
from llmtui.core.errors import DataError
from llmtui.core.preset.schema import CHAT_TEMPLATES, TEMPLATES

_FOLDER: Final = Path(__file__).parent / "chat_template_files"
_PREFIX: Final = "chat:"
_BY_NAME: Final = "choose one by name, such as chat:chatml"


def use_chat_template(template: str, tokenizer: Any, base_folder: Path | None = None) -> None:
    """Give the tokenizer the chat template that it is trained with, so that it is saved with the result.

    That is one of ours for `chat:NAME`, and a file of one's own that is a chat template.

    Raises:
        DataError: there is none of that name, or it is broken; `chat` was asked for and the tokenizer has none.
    """
    if template.startswith(_PREFIX):
        tokenizer.chat_template = named_chat_template(template.removeprefix(_PREFIX), tokenizer)
    elif template == "chat" and not getattr(tokenizer, "chat_template", None):
        raise DataError(
            "the model's tokenizer has no chat template", place="dataset.template",
            hint=f"choose one, it is saved with the result: {', '.join(_PREFIX + name for name in CHAT_TEMPLATES)}",
        )  # fmt: skip
    elif template not in TEMPLATES:
        own = own_template(template, tokenizer, base_folder)
        if own.is_chat and own.is_portable:
            tokenizer.chat_template = own.text.source


def named_chat_template(name: str, tokenizer: Any) -> str:
    """The text of one of ours; it writes the begin token where the tokenizer puts one before every text.

    Raises:
        DataError: there is none of that name.
    """
    if name not in CHAT_TEMPLATES:
        near = get_close_matches(name, CHAT_TEMPLATES, n=1)
        hint = f"did you mean {_PREFIX}{near[0]}?" if near else f"use one of {', '.join(CHAT_TEMPLATES)}"
        raise DataError(f'there is no chat template "{name}"', place="dataset.template", hint=hint)
    text = (_FOLDER / f"{name}.jinja").read_text("utf-8").rstrip("\n")
    begins = tokenizer.bos_token_id is not None and special_tokens(tokenizer).begin == (tokenizer.bos_token_id,)
    return "{{- bos_token }}\n" + text if begins else text


def tokenizer_chat(tokenizer: Any) -> Chat:
    """The tokenizer's chat template, ready to render.

    Raises:
        DataError: it is no template.
    """
    try:
        text = JinjaText(tokenizer.get_chat_template(), strict=False)
    except JinjaError as error:
        raise DataError(f"the tokenizer's chat template is broken: line {error.line}: {error.message}",
                        place="dataset.template", hint=_BY_NAME) from error  # fmt: skip
    except ValueError as error:  # several templates and none of them is the default
        raise DataError(f"the tokenizer's chat template cannot be chosen: {str(error).splitlines()[0]}",
                        place="dataset.template", hint=_BY_NAME) from error  # fmt: skip
    return Chat(text, tokenizer.special_tokens_map, turn_enders(tokenizer))
