"""An adapter merged into its base, as safetensors: `python -m llmtui.core.worker.merge RUN_DIRECTORY OUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from llmtui.core.errors import DataError, LlmtuiError, RefusedError, UsageError
from llmtui.core.runs.directory import RunDirectory

_PROMPTS: Final = ("Hello", "The capital of Japan is", "質問に答えてください。")
_NEW_TOKENS: Final = 16


def merge_into(folder: Path, base: str, adapter: Path, *, check: bool = True) -> dict[str, Any]:
    """Merge into the unquantised base and save into an empty folder.

    The base is loaded in its own dtype, never as int8 or nf4: merging into those would round the update away.

    Args:
        check: compare greedy tokens of a few prompts before and after.

    Returns:
        What was done, with a note when rounding changed an answer.

    Raises:
        RefusedError: the base is quantised on disk, or the merged model answers otherwise than rounding explains.
        DataError: base or adapter cannot be loaded.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from llmtui.core.data.sentencepiece_models import faithful
    from llmtui.core.worker.failures import hub_error

    try:
        from peft import PeftModel

        model = AutoModelForCausalLM.from_pretrained(base, dtype="auto", weights_only=True)
        if getattr(model.config, "quantization_config", None) is not None:
            raise RefusedError("the base is kept quantised on disk and cannot take an adapter in", place=base,
                               hint="name an unquantised base")  # fmt: skip
        tuned = PeftModel.from_pretrained(model, adapter)
        source = adapter if (adapter / "tokenizer_config.json").is_file() else base
        tokenizer = faithful(AutoTokenizer.from_pretrained(source), Path(source))
    except LlmtuiError:
        raise
    except Exception as error:
        raise hub_error(base, error) from error
    model.config.use_cache = True
    before = _answers(tuned, tokenizer) if check else []
    merged = tuned.merge_and_unload()
    notes = _compare(before, _answers(merged, tokenizer), str(merged.dtype)) if check else []
    merged.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"base": base, "dtype": str(merged.dtype).removeprefix("torch."), "checked_prompts": len(before),
            "notes": notes}  # fmt: skip


def _answers(model: Any, tokenizer: Any) -> list[tuple[list[int], Any]]:
    """Greedy tokens, and for each the logits it was chosen from (float32 [new tokens, vocabulary])."""
    import torch

    answers = []
    model.eval()
    for text in _PROMPTS:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            out = model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=_NEW_TOKENS, do_sample=False,
                pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id or 0, output_logits=True,
                return_dict_in_generate=True,
            )  # fmt: skip
        answers.append((out.sequences[0, ids.shape[1] :].tolist(), torch.cat(out.logits).float()))
    return answers


def _compare(before: list[tuple[list[int], Any]], after: list[tuple[list[int], Any]], dtype: str) -> list[str]:
    """Notes on answers that rounding alone has changed.

    Where tokens part, both choices were made from logits of the same text: the merge is at fault only if the two
    candidates were further apart than the merge moved any logit, or if it moved them far.

    Raises:
        RefusedError: the merge is at fault.
    """
    notes = []
    for number, ((old, old_logits), (new, new_logits)) in enumerate(zip(before, after, strict=True), 1):
        if old == new:
            continue
        part = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)) - 1)
        moved = float((old_logits[part] - new_logits[part]).abs().max())
        margin = float(old_logits[part][old[part]] - old_logits[part][new[part]])
        spread = float(old_logits[part].std())
        if margin > 2 * moved or moved > 0.25 * spread:
            raise RefusedError(
                f"the merged model answers check prompt {number} otherwise: token {part + 1} differs, and its logits "
                f"moved by {moved:.3g}", hint="use the adapter beside its base",
            )  # fmt: skip
        notes.append(f"rounding to {dtype} decides token {part + 1} of check prompt {number} (margin {margin:.2g})")
    return notes


def merge_run(directory: RunDirectory, out: Path) -> dict[str, Any]:
    """Merge a run's adapter into its base, into a new folder: whole or not at all.

    Raises:
        UsageError: the run has no adapter.
        RefusedError: `out` exists.
    """
    from llmtui.core.cached import write_folder
    from llmtui.core.worker.locate import locate

    out = out.expanduser().absolute()
    if out.exists() or out.is_symlink():
        raise RefusedError("the folder exists already", place=str(out), hint="name a new one")
    if not (directory.adapter / "adapter_config.json").is_file():
        what = "its result is a whole model already" if directory.model.is_dir() else "it has no result yet"
        raise UsageError(f"run {directory.id} has no adapter: {what}", hint="llmtui show says what it has")
    location = locate(str(directory.adapter), directory.path)
    answer: dict[str, Any] = {"path": str(out)}
    try:
        write_folder(out, lambda folder: answer.update(merge_into(folder, location.path, directory.adapter)))
    except OSError as error:
        raise DataError(f"the merged model cannot be written: {error.strerror or error}", place=str(out),
                        hint="name a folder on a disk with room for the whole model") from error  # fmt: skip
    return answer


def main() -> int:
    """Print one JSON line: what was written, or the error."""
    from llmtui.core.worker.__main__ import quiet

    quiet()
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
