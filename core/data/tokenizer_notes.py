"""What a person should know about a tokenizer before training on what it makes of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmtui.core.data.prompts import marks_newlines


def tokenizer_notes(template: str, tokenizer: Any, base_folder: Path | None = None) -> list[str]:
    """Sentences on what is lost with this tokenizer and template; none when nothing is."""
    notes = []
    if tokenizer.eos_token_id is None:
        notes.append("the tokenizer has no end token, so the model will not learn to stop")
    if not marks_newlines(template, tokenizer, base_folder) and _drops_newlines(tokenizer):
        notes.append("the tokenizer drops newlines; template rinna (or one of your own) can write them as <NL>")
    return notes


def _drops_newlines(tokenizer: Any) -> bool:
    ids = tokenizer("a\nb", add_special_tokens=False)["input_ids"]
    return "\n" not in tokenizer.decode(ids)
