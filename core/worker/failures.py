"""Exceptions of the libraries as the project's own errors, each with a place and a cure."""

from __future__ import annotations

import torch

from llmtui.core.errors import DataError, LlmtuiError, MachineError, PresetError
from llmtui.core.runs import events as ev


class GpuMemoryError(MachineError):
    """A step does not fit, not even row by row."""

    kind = "gpu_memory"
    exit_code = 1


class NanLossError(LlmtuiError):
    """The loss is not a number, or exactly zero from the start."""

    kind = "nan_loss"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device's memory ran out."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and "out of memory" in str(error).lower()


def memory_sentence() -> str:
    """The numbers of the fullest GPU, GiB."""
    if not torch.cuda.is_available():
        return ""
    index = torch.cuda.current_device()
    free, total = torch.cuda.mem_get_info(index)
    gib = 1 << 30
    allocated, reserved = torch.cuda.memory_allocated(index), torch.cuda.memory_reserved(index)
    others = total - free - reserved
    return (
        f" (GPU {index}: {total / gib:.1f} GiB, this run holds {allocated / gib:.1f} allocated and "
        f"{reserved / gib:.1f} reserved, others and the driver {max(0, others) / gib:.1f})"
    )


def as_llmtui_error(error: BaseException) -> LlmtuiError:
    """The error a user is told. Unknown ones keep their type and last line."""
    if isinstance(error, LlmtuiError):
        return error
    if is_out_of_memory(error):
        return GpuMemoryError(f"the GPU's memory ran out{memory_sentence()}",
                              hint="use a smaller batch, gradient_checkpointing: true, or a quantised base")  # fmt: skip
    if isinstance(error, MemoryError):
        return MachineError("the machine's memory ran out", hint="close other programs or use a smaller model")
    if isinstance(error, OSError) and error.errno == 28:
        return MachineError("the disk is full", place=str(error.filename or ""), hint="free space, then llmtui resume")
    text = str(error).strip().splitlines()
    wrapped = LlmtuiError(f"{type(error).__name__}: {text[-1] if text else 'no message'}",
                          hint="llmtui logs shows the traceback")  # fmt: skip
    wrapped.kind = "python"  # type: ignore[misc]
    return wrapped


def error_event(error: LlmtuiError) -> ev.ErrorEvent:
    """The event for an error."""
    message = error.message if not isinstance(error, PresetError) else str(error)
    return ev.ErrorEvent(
        kind=error.kind, message=message, place=error.place, hint=error.hint, exit_code=error.exit_code
    )


def hub_error(name: str, error: Exception) -> LlmtuiError:
    """Why a model or tokenizer could not be loaded."""
    text = f"{type(error).__name__}: {error}"
    low = text.lower()
    place = "model.name_or_path"
    if "gated" in low or "401" in text or "403" in text:
        return MachineError(f"access to {name} is refused", place=place,
                            hint="accept the terms on its hub page, then `hf auth login` or set HF_TOKEN")  # fmt: skip
    if "sentencepiece" in low or "protobuf" in low or "tiktoken" in low:
        package = "sentencepiece" if "sentencepiece" in low else "protobuf"
        return MachineError(f"the tokenizer of {name} needs the package {package}", place=place,
                            hint=f"pip install {package}")  # fmt: skip
    if "not a valid model identifier" in low or "repositorynotfound" in low.replace(" ", ""):
        return DataError(f'there is no folder and no hub model "{name}"', place=place, hint="check the name")
    if any(
        w in low for w in ("couldn't connect", "offline", "connection", "resolve", "localentrynotfound", "timed out")
    ):
        return MachineError(f"the hub cannot be reached for {name}, and it is not in the local cache", place=place,
                            hint="check the network, or name a local folder")  # fmt: skip
    return DataError(f"{name} cannot be loaded: {text.splitlines()[0][:300]}", place=place,
                     hint="llmtui logs shows the traceback")  # fmt: skip
