"""The model and tokenizer of a preset, loaded as it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import xxhash

from llmtui.core.cached import cached_folder
from llmtui.core.errors import LlmtuiError, MachineError
from llmtui.core.preset import Preset
from llmtui.core.worker.arguments import load_arguments, quantization_config
from llmtui.core.worker.cached import keep_model
from llmtui.core.worker.downloading import download, downloaded
from llmtui.core.worker.failures import hub_error
from llmtui.core.worker.gguf import converted
from llmtui.core.worker.locate import INITIALISE, Location, locate
from llmtui.core.worker.precision import Precision

Progress = Callable[[str, int, int | None, str], None]
"""Phase, done, total, text."""


def find_model(preset: Preset, base_folder: Path, kept: Path, on_progress: Progress) -> Location:
    """Where the preset's model is, as something that `from_pretrained` can load.

    A hub model is downloaded, a GGUF file converted, an adapter merged into its base. What belongs to the cache or to
    another run is kept in `kept` under a second name (hard links), so that an adapter trained on it stays usable and
    a resumed attempt finds the same base; once there, it is what later attempts load.

    Args:
        base_folder: what a relative path is relative to.
        kept: the run's `base/`.
    """
    if (kept / "config.json").is_file():
        return Location(str(kept), said="the base is kept in base/")
    location = locate(preset.model.name_or_path, base_folder)
    if location.gguf is not None:
        on_progress("loading_model", 0, None, f"converting {location.gguf.name} (once)")
        folder = converted(location.gguf, lambda: on_progress("loading_model", 0, None, "another run converts it"))
        location = Location(str(folder), fleeting=True, said=f"{location.gguf.name} was converted into the cache")
    if location.adapter is not None:
        on_progress("loading_model", 0, None, "merging the adapter into its base (once)")
        location = Location(str(_merged(location)), fleeting=True, said=location.said)
    if location.initialise:
        return _initialised_base(location, preset, kept)
    if location.fleeting:
        keep_model(Path(location.path), kept)
        return Location(str(kept), said=f"{location.said}; kept in base/")
    return location if location.local else _fetched(location.path, preset, on_progress)


def find_tokenizer(preset: Preset, base_folder: Path, on_progress: Progress) -> Location:
    """Where the model's tokenizer and config are, as `find_model` would find them, but without weights from a hub."""
    location = locate(preset.model.name_or_path, base_folder)
    if location.gguf is not None:
        on_progress("loading_model", 0, None, f"converting {location.gguf.name} (once)")
        return Location(str(converted(location.gguf)), fleeting=True)
    if location.local:
        return Location(location.path)
    return _fetched(location.path, preset, on_progress, weights=False)


def _fetched(name: str, preset: Preset, on_progress: Progress, *, weights: bool = True) -> Location:
    """A hub model as a folder of the local cache; without a network, what is there already serves."""
    model = preset.model
    on_progress("downloading", 0, None, name)
    try:
        folder = download(
            name, model.revision, model.trust_remote_code,
            lambda done, total: on_progress("downloading", done, total, name), weights=weights,
        )  # fmt: skip
        return Location(str(folder), hub_id=name)
    except LlmtuiError:
        raise
    except Exception as error:
        reason = hub_error(name, error)
        kept = downloaded(name, model.revision) if isinstance(reason, MachineError) else None
        if kept is None:
            raise reason from error
        return Location(str(kept), hub_id=name, said=f"{name} is taken from the local cache: {reason.message}")


def _merged(location: Location) -> Path:
    """The adapter merged into its base, kept in the cache under the content of the one and the path of the other."""
    from llmtui.core.worker.merge import merge_into

    assert location.adapter is not None
    adapter = location.adapter
    state = xxhash.xxh3_64(location.path.encode())
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        state.update((adapter / name).read_bytes())

    def make(folder: Path) -> None:
        merge_into(folder, location.path, adapter, check=False)

    return cached_folder(f"merged-{state.hexdigest()}", make)


def _initialised_base(location: Location, preset: Preset, kept: Path) -> Location:
    """An adapter on random weights is worth nothing without them: keep such a base in the run directory."""
    if preset.lora is None:
        return location
    from llmtui.core.cached import write_folder

    def make(folder: Path) -> None:
        _initialise(location, preset, {"dtype": torch.float32}).save_pretrained(folder)
        load_tokenizer(location, preset).save_pretrained(folder)

    write_folder(kept, make)
    return Location(str(kept), said=f"{location.said}; kept in base/")


def load_tokenizer(location: Location, preset: Preset) -> Any:
    """The tokenizer beside the model; one that is only a sentencepiece model reads as that model does."""
    from transformers import AutoTokenizer

    from llmtui.core.data.sentencepiece_models import check_packages, faithful

    check_packages(Path(location.path))
    try:
        loaded = AutoTokenizer.from_pretrained(
            location.path, revision=preset.model.revision or "main", trust_remote_code=preset.model.trust_remote_code
        )
    except Exception as error:
        raise hub_error(preset.model.name_or_path, error) from error
    return faithful(loaded, Path(location.path))


def load_config(location: Location, preset: Preset) -> Any:
    """The model's config, without its weights."""
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(
            location.path, revision=preset.model.revision or "main", trust_remote_code=preset.model.trust_remote_code
        )
    except Exception as error:
        raise hub_error(preset.model.name_or_path, error) from error


def load_model(location: Location, preset: Preset, precision: Precision, device: str, on_progress: Progress) -> Any:
    """The base model on its device, quantised as the preset says.

    Raises:
        torch.OutOfMemoryError: the weights do not fit.
        LlmtuiError: it cannot be loaded, with the reason.
    """
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    arguments = load_arguments(preset, precision)
    arguments["dtype"] = getattr(torch, arguments["dtype"])
    quantization = quantization_config(preset, precision)
    if quantization is not None:
        if "bnb_4bit_compute_dtype" in quantization:
            quantization["bnb_4bit_compute_dtype"] = getattr(torch, quantization["bnb_4bit_compute_dtype"])
        arguments["quantization_config"] = BitsAndBytesConfig(**quantization)
    try:
        if location.initialise:
            return _initialise(location, preset, arguments).to(device)
        with _weights_counted(on_progress):
            model = AutoModelForCausalLM.from_pretrained(location.path, device_map={"": device}, **arguments)
    except (LlmtuiError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise hub_error(preset.model.name_or_path, error) from error
    if location.hub_id:  # what an adapter will name as its base, rather than a folder of the cache
        model.config._name_or_path = model.name_or_path = location.hub_id
    return model


def _initialise(location: Location, preset: Preset, arguments: dict[str, Any]) -> Any:
    """Random weights from the config, drawn with the preset's seed (the marker does not go into results)."""
    from transformers import AutoModelForCausalLM, set_seed

    config = load_config(location, preset)
    if hasattr(config, INITIALISE):
        delattr(config, INITIALISE)
    set_seed(preset.training.seed)
    wanted = {name: arguments[name] for name in ("dtype", "attn_implementation") if name in arguments}
    return AutoModelForCausalLM.from_config(config, trust_remote_code=preset.model.trust_remote_code, **wanted)


@contextmanager
def _weights_counted(on_progress: Progress) -> Iterator[None]:
    """Pass on transformers' own progress over the weights, and print no bar."""
    from transformers.utils import logging

    def hook(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return _Counted(arguments[0] if arguments else named.get("iterable"), on_progress)

    previous = logging.set_tqdm_hook(hook)
    try:
        yield
    finally:
        logging.set_tqdm_hook(previous)


class _Counted:
    """Stands in for a tqdm bar over the weights."""

    def __init__(self, items: Any, on_progress: Progress) -> None:
        self._items = items if items is not None else ()
        self._on_progress = on_progress

    def __iter__(self) -> Iterator[Any]:
        total = len(self._items) if hasattr(self._items, "__len__") else None
        for number, item in enumerate(self._items):
            self._on_progress("loading_model", number, total, "weights")
            yield item

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None: ...


def positions(config: Any) -> int | None:
    """The longest sequence the model was made for; None when its config does not say."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def pad_token(tokenizer: Any) -> tuple[int, str]:
    """A pad token id and what was chosen. Padding is masked by position, so an end token may serve."""
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id), ""
    for name in ("unk_token", "eos_token"):
        identity = getattr(tokenizer, f"{name}_id")
        if identity is not None:
            tokenizer.pad_token = getattr(tokenizer, name)
            return int(identity), f"the tokenizer has no pad token; padding with {getattr(tokenizer, name)!r}, masked"
    return 0, "the tokenizer has no pad token; padding with token 0, masked"
