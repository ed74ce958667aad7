"""The run's result: `adapter/` or `model/` with the tokenizer, whole or not at all."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import xxhash

from llmtui.core.cached import fsync_tree
from llmtui.core.errors import MachineError
from llmtui.core.files import fsync_folder
from llmtui.core.runs import events as ev
from llmtui.core.runs.checkpoints import TRAINING_FILES, folder_manifest
from llmtui.core.runs.directory import RunDirectory


def save_result(directory: RunDirectory, model: Any, tokenizer: Any, best: Path | None, step: int) -> ev.Result:
    """Write the result under a temporary name, fsync and rename it.

    Args:
        best: the checkpoint to take the weights from; None takes the model as it is.
        step: the step the weights are from.

    Raises:
        MachineError: it cannot be written; the checkpoints are still there.
    """
    adapter = hasattr(model, "peft_config")
    target = directory.adapter if adapter else directory.model
    for left in directory.path.glob(f".*-{target.name}-*"):  # from a killed attempt
        shutil.rmtree(left, ignore_errors=True)
    staging = directory.path / f".tmp-{target.name}-{uuid.uuid4().hex[:8]}"
    try:
        if best is None:
            model.save_pretrained(staging)
        else:
            shutil.copytree(best, staging, ignore=shutil.ignore_patterns(*TRAINING_FILES))
        tokenizer.save_pretrained(staging)
        (staging / "README.md").unlink(missing_ok=True)  # PEFT's empty model card
        fsync_tree(staging)
        manifest = folder_manifest(staging, run=directory.id, step=step, settings="")
        if target.exists():
            target.rename(directory.path / f".trash-{target.name}-{uuid.uuid4().hex[:8]}")
        staging.rename(target)
        fsync_folder(directory.path)
    except Exception as error:  # safetensors raises an error of its own on a full disk
        shutil.rmtree(staging, ignore_errors=True)
        hint = f"free space; the checkpoints are kept: llmtui resume {directory.id}"
        raise MachineError(f"the result could not be written: {error}", place=str(directory.path), hint=hint) from error
    for trash in directory.path.glob(f".trash-{target.name}-*"):
        shutil.rmtree(trash, ignore_errors=True)
    state = xxhash.xxh3_128()
    for name, file in sorted(manifest.files.items()):
        state.update(f"{name}\0{file.xxh3_128}\n".encode())
    return ev.Result(
        path=target.name, kind="adapter" if adapter else "model", hash=state.hexdigest(), step=step,
        bytes=sum(f.bytes for f in manifest.files.values()), source="best" if best else "last",
    )  # fmt: skip
