"""A `.gguf` file as a folder that trains: converted once into the cache, whole or not at all.

A model that transformers reads with `gguf_file=` refuses training and saving (it counts as quantised), so it is built
anew from its config and state dict and saved as safetensors.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from llmtui.core.errors import DataError
from llmtui.core.home import cache_folder


def converted(path: Path) -> Path:
    """The cached conversion of a GGUF file, made when it is not there. The name holds the file's identity.

    Raises:
        DataError: transformers cannot read it.
    """
    status = path.stat()
    identity = f"{path.resolve()}:{status.st_size}:{status.st_mtime_ns}".encode()
    target = cache_folder() / f"gguf-{path.stem}-{hashlib.sha256(identity).hexdigest()[:16]}"
    if (target / "config.json").is_file():
        return target
    staging = target.with_name(f".{target.name}-{os.getpid()}")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        _convert(path, staging)
        try:
            staging.rename(target)
        except OSError:  # another process was first
            if not (target / "config.json").is_file():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _convert(path: Path, staging: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    try:
        loaded = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    except (ValueError, OSError, KeyError, NotImplementedError) as error:
        raise DataError(f"the GGUF file cannot be read: {error}", place=path.name, hint="use another file") from error
    settings = loaded.config.to_dict()
    settings.pop("quantization_config", None)
    config = AutoConfig.for_model(**settings)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(staging)
    tokenizer.save_pretrained(staging)
