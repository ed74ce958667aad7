"""What torch's allocator and the card hold, read without stopping the device."""

from __future__ import annotations

import torch

from llmtui.core.runs import events as ev


def memory_event(phase: str, weights: int | None = None, uuids: tuple[str, ...] = ()) -> ev.Memory:
    """The allocator's numbers for every visible GPU, and the resident set.

    Args:
        weights: bytes of the model's weights and buffers on the device, when known.
        uuids: the cards' UUIDs in the order of `cuda:N`.
    """
    import psutil

    gpus = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        gpus.append(
            ev.MemoryGpu(
                index=index, uuid=uuids[index] if index < len(uuids) else "", weights=weights,
                allocated=torch.cuda.memory_allocated(index), reserved=torch.cuda.memory_reserved(index),
                peak_allocated=torch.cuda.max_memory_allocated(index),
                peak_reserved=torch.cuda.max_memory_reserved(index),
            )
        )  # fmt: skip
    return ev.Memory(phase=phase, gpus=gpus, rss=psutil.Process().memory_info().rss)


def weight_bytes(model: torch.nn.Module) -> int:
    """Bytes of all parameters and buffers, each storage counted once."""
    seen: dict[int, int] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
    return sum(seen.values())


def final_event() -> ev.GpuFinal | None:
    """What each card shows as used now; None without NVML or without a GPU in use."""
    if not torch.cuda.is_available():
        return None
    from llmtui.core.hardware.nvml import NvmlReader

    visible = {str(torch.cuda.get_device_properties(i).uuid) for i in range(torch.cuda.device_count())}
    gpus, _ = NvmlReader().sample(())
    used = [gpu for gpu in gpus if gpu.uuid.removeprefix("GPU-") in visible] or gpus
    return ev.GpuFinal(gpus=used)
