"""A preset's data prepared outside of a run: `python -m llmtui.core.worker.preparing`, the preset's text on stdin.

Prints lines of JSON: progress, and at last the folder that holds the rows, or the error. What was prepared before is
found without torch or transformers.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from llmtui.core.data.identity import cache_key, hub_snapshot, positions_in
from llmtui.core.data.prepare import check_length, find_prepared, prepare
from llmtui.core.preset import Preset, parse_preset
from llmtui.core.worker.answering import Say, answer
from llmtui.core.worker.locate import locate


def main() -> int:
    """Lines of JSON; the exit code."""
    return answer(lambda say: {"folder": str(prepared_folder(parse_preset(sys.stdin.read()).preset, say))})


def prepared_folder(preset: Preset, say: Say) -> Path:
    """Where the preset's rows are kept, made when they are not there yet.

    Raises:
        LlmtuiError: with place and cure.
    """
    folder = _tokenizer_folder(preset)
    if folder is not None:
        check_length(preset.dataset.max_length, positions_in(folder))
        key = cache_key(preset, Path.cwd(), folder)
        found = find_prepared(key) if key is not None else None
        if found is not None:
            return found.folder
    return _made(preset, say)


def _tokenizer_folder(preset: Preset) -> Path | None:
    """Where the tokenizer is when nothing has to be downloaded or converted for it."""
    location = locate(preset.model.name_or_path, Path.cwd())
    if location.gguf is not None:
        return None
    return Path(location.path) if location.local else hub_snapshot(location.path, preset.model.revision)


def _made(preset: Preset, say: Say) -> Path:
    say("loading_tokenizer", 0, None)
    from llmtui.core.data.chat_templates import use_chat_template
    from llmtui.core.worker.__main__ import quiet
    from llmtui.core.worker.models import find_tokenizer, load_config, load_tokenizer, pad_token, positions

    quiet()
    location = find_tokenizer(preset, Path.cwd(), say)
    tokenizer = load_tokenizer(location, preset)
    use_chat_template(preset.dataset.template, tokenizer, Path.cwd())
    pad_token(tokenizer)
    key = cache_key(preset, Path.cwd(), Path(location.path)) or f"tokens-of-{os.getpid()}-{time.time_ns()}"
    return prepare(
        preset, tokenizer, base_folder=Path.cwd(), max_positions=positions(load_config(location, preset)),
        on_progress=say, key=key,
    ).folder  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
