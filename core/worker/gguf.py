"""A `.gguf` file as a folder that trains: converted once into the cache, whole or not at all.

A model that transformers reads with `gguf_file=` refuses training and saving (it counts as quantised), so it is built
anew from its config and state dict and saved as safetensors.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xxhash

from llmtui.core.cached import cached_folder
from llmtui.core.errors import DataError


def converted(path: Path, waiting: Callable[[], None] = lambda: None) -> Path:
    """The cached conversion of a GGUF file, made when it is not there. The name holds the file's identity.

    Raises:
        DataError: transformers cannot read it.
    """
    status = path.stat()
    identity = xxhash.xxh3_64_hexdigest(f"{path.resolve()}:{status.st_size}:{status.st_mtime_ns}".encode())
    return cached_folder(f"gguf-{path.stem}-{identity}", lambda folder: _convert(path, folder), waiting)


def _convert(path: Path, folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    try:
        loaded = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    except Exception as error:  # a broken file fails in many ways: struct.error, KeyError, ValueError
        raise DataError(f"the GGUF file {path} cannot be read: {error}", place="model.name_or_path",
                        hint="use another file, or the model's own safetensors") from error  # fmt: skip
    settings = loaded.config.to_dict()
    settings.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings), dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
