"""An adapter merged into its base, as safetensors: `python -m llmtui.core.worker.merge RUN_DIRECTORY OUT`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from llmtui.core.errors import LlmtuiError, RefusedError, UsageError
from llmtui.core.runs.directory import RunDirectory


def merge_adapter(base: str, adapter: Path, out: Path, *, check: bool = True) -> dict[str, Any]:
    """Merge into the unquantised base and save to a new folder.

    The base is loaded in its own dtype, never as int8 or nf4: merging into those would round the update away.

    Args:
        check: compare greedy tokens of a few prompts before and after, and refuse when they differ.

    Raises:
        RefusedError: `out` exists, or the tokens differ.
    """
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if out.exists():
        raise RefusedError("the folder exists already", place=str(out), hint="name a new one")
    model = AutoModelForCausalLM.from_pretrained(base, dtype="auto", use_safetensors=True)
    if getattr(model.config, "quantization_config", None) is not None:
        raise RefusedError("the base is kept quantised on disk and cannot take an adapter in", place=base,
                           hint="name an unquantised base")  # fmt: skip
    peft_model = PeftModel.from_pretrained(model, adapter)
    source = adapter if (adapter / "tokenizer_config.json").is_file() else base
    tokenizer = AutoTokenizer.from_pretrained(source)
    before = _greedy(peft_model, tokenizer) if check else []
    merged = peft_model.merge_and_unload()
    if check and (after := _greedy(merged, tokenizer)) != before:
        where = next(i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        raise RefusedError(
            f"the merged model answers check prompt {where + 1} with other tokens (rounding in {merged.dtype})",
            place=str(adapter), hint="use the adapter beside its base",
        )  # fmt: skip
    staging = out.with_name(f".{out.name}-{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        merged.save_pretrained(staging)
        tokenizer.save_pretrained(staging)
        staging.rename(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return {"path": str(out), "base": base, "dtype": str(merged.dtype), "checked_prompts": len(before)}


def _greedy(model: Any, tokenizer: Any) -> list[list[int]]:
    import torch

    answers = []
    model.eval()
    for text in ("Hello", "The capital of Japan is", "質問に答えてください。"):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False,
                                 pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id or 0)  # fmt: skip
        answers.append(out[0, ids.shape[1] :].tolist())
    return answers


def merge_run(directory: RunDirectory, out: Path) -> dict[str, Any]:
    """Merge a run's adapter into its base.

    Raises:
        UsageError: the run has no adapter.
    """
    from llmtui.core.worker.locate import locate

    if not (directory.adapter / "adapter_config.json").is_file():
        what = "its result is a whole model already" if directory.model.is_dir() else "it has no result yet"
        raise UsageError(f"run {directory.id} has no adapter: {what}", hint="llmtui show says what it has")
    location = locate(str(directory.adapter), directory.path)
    return merge_adapter(location.path, directory.adapter, out)


def main() -> int:
    """Print one JSON line: what was written, or the error."""
    directory, out = RunDirectory(Path(sys.argv[1])), Path(sys.argv[2])
    try:
        answer = merge_run(directory, out)
    except LlmtuiError as error:
        print(json.dumps({"error": error.as_dict()}))  # noqa: T201
        return error.exit_code
    print(json.dumps(answer))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
