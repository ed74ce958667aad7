"""Exceptions of the libraries as the project's own errors, each with a place and a cure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

from llmtui.core.errors import DataError, LlmtuiError, MachineError, PresetError
from llmtui.core.runs import events as ev

_GIB = 1 << 30


class GpuMemoryError(MachineError):
    """A step does not fit, not even row by row."""

    kind = "gpu_memory"
    exit_code = 1


class NanLossError(LlmtuiError):
    """The loss is not a number, or exactly zero from the start."""

    kind = "nan_loss"


class PythonError(LlmtuiError):
    """Something nobody foresaw; the traceback is in output.log."""

    kind = "python"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device's memory ran out (cuBLAS has words of its own for it)."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and ("out of memory" in text.lower() or "ALLOC_FAILED" in text)


def memory_sentence() -> str:
    """The current GPU's numbers in parentheses, GiB; empty without a GPU."""
    if not torch.cuda.is_available():
        return ""
    index = torch.cuda.current_device()
    free, total = torch.cuda.mem_get_info(index)
    allocated, reserved = torch.cuda.memory_allocated(index), torch.cuda.memory_reserved(index)
    others = max(0, total - free - reserved)
    return (
        f" (GPU {index}: {total / _GIB:.1f} GiB, this run holds {allocated / _GIB:.1f} allocated and "
        f"{reserved / _GIB:.1f} reserved, other processes and the driver {others / _GIB:.1f})"
    )


def as_llmtui_error(error: BaseException) -> LlmtuiError:
    """The error a user is told. Unknown ones keep their type and last line."""
    if isinstance(error, LlmtuiError):
        return error
    if is_out_of_memory(error):
        hint = "use a smaller batch, gradient_checkpointing: true, or a quantised base"
        return GpuMemoryError(f"the GPU's memory ran out{memory_sentence()}", hint=hint)
    if isinstance(error, MemoryError):
        return MachineError("the machine's memory ran out", hint="close other programs or use a smaller model")
    if isinstance(error, OSError) and error.errno in (28, 122):
        return MachineError("the disk is full", place=str(error.filename or ""), hint="free space, then llmtui resume")
    text = str(error).strip().splitlines()
    return PythonError(f"{type(error).__name__}: {text[-1] if text else 'no message'}",
                       hint="llmtui logs shows the traceback")  # fmt: skip


def error_event(error: LlmtuiError) -> ev.ErrorEvent:
    """The event for an error."""
    message = error.message if not isinstance(error, PresetError) else str(error)
    return ev.ErrorEvent(
        kind=error.kind, message=message, place=error.place, hint=error.hint, exit_code=error.exit_code
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def hub_error(name: str, error: Exception) -> LlmtuiError:
    """Why a model or tokenizer could not be loaded, in one sentence.

    The libraries wrap the first cause several times over, so the whole chain is looked at.
    """
    place = "model.name_or_path"
    own = next((e for e in _chain(error) if isinstance(e, LlmtuiError)), None)
    if own is not None:
        return own
    kinds = {type(e).__name__ for e in _chain(error)}
    text = " ".join(str(e) for e in _chain(error))
    low = text.lower()
    if "GatedRepoError" in kinds:
        return MachineError(f"access to {name} is gated", place=place,
                            hint="accept its terms on the hub, then `hf auth login` or set HF_TOKEN")  # fmt: skip
    if "RevisionNotFoundError" in kinds or "not a valid git identifier" in low:
        return DataError(f"{name} has no such revision", place="model.revision", hint="check model.revision")
    if "RepositoryNotFoundError" in kinds or "HFValidationError" in kinds:
        return DataError(f"there is no folder and no hub model {name}, or it is private", place=place,
                         hint="check the name; for a private model `hf auth login` or set HF_TOKEN")  # fmt: skip
    package = re.search(r"sentencepiece|protobuf|tiktoken", low)
    if package:  # without protobuf transformers asks for tiktoken
        wanted = "sentencepiece" if package[0] == "sentencepiece" else "protobuf"
        return MachineError(f"the tokenizer of {name} needs the package {wanted}", place=place,
                            hint=f"pip install {wanted}")  # fmt: skip
    if kinds & {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError", "ConnectTimeout", "ReadTimeout",
                "ConnectionError", "ProxyError"} or "couldn't connect" in low:  # fmt: skip
        return MachineError(f"the hub cannot be reached for {name}, and it is not in the local cache", place=place,
                            hint="check the network, or name a local folder")  # fmt: skip
    if "trust_remote_code" in low:
        return DataError(f"{name} needs Python code of its own to be run", place="model.trust_remote_code",
                         hint="read that code, then set model.trust_remote_code: true if you trust it")  # fmt: skip
    first = str(error).strip().splitlines()
    return DataError(f"{name} cannot be loaded: {type(error).__name__}: {first[0][:300] if first else ''}", place=place,
                     hint="llmtui logs shows the traceback")  # fmt: skip
