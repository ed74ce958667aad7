"""A forecast as lines for people; every estimate is marked ≈."""

from __future__ import annotations

from llmtui.core import words
from llmtui.core.forecast.estimate import Forecast


def forecast_lines(found: Forecast) -> list[str]:
    """Name and value, one pair a line; the sum of memory below its parts."""
    rows: list[tuple[str, str]] = [("model", _model(found))]
    if found.effective_batch:
        rows.append(("batch", f"{words.count(found.effective_batch)} rows per optimizer step"))
        rows.append(("steps", _steps(found)))
    if found.parts:
        rows.append(("memory", ""))
        rows += [(f"  {part.name}", f"≈ {words.size(part.bytes)}") for part in found.parts]
        rows.append(("  allocated", f"≈ {words.size(found.allocated)} at the peak"))
        rows.append(("  process", f"≈ {words.size(found.process)} with the allocator's reserve and CUDA's own"))
        rows.append(("cache", f"≈ {words.size(found.cache_bytes_per_token)} per token when generating"))
    if found.disk_bytes is not None:
        enough = "" if found.disk_free is None or found.disk_free > found.disk_bytes else " — not enough"
        sizes = f"{words.size(found.checkpoint_bytes)} per checkpoint, {words.size(found.result_bytes)} the result"
        rows.append(("disk", f"≈ {words.size(found.disk_bytes)}: {sizes}; {words.size(found.disk_free)} free{enough}"))
    for card in found.gpus:
        room = f"{words.size(card.free)} free of {words.size(card.total)}"
        rows.append((f"GPU {card.index}", f"{card.verdict}: needs ≈ {words.size(card.needed)}, {room} ({card.name})"))
    if not found.gpus:
        rows.append(("GPU", "none to judge against"))
    rows += [("note", note) for note in found.notes]
    return [f"{name:<14}{text}".rstrip() for name, text in rows]


def _model(found: Forecast) -> str:
    if found.parameters is None:
        return f"{words.UNKNOWN} ({found.source})"
    trained = f", {words.short_count(found.trainable)} of them trained" if found.trainable is not None else ""
    if found.trainable is not None and found.trainable < found.parameters:
        trained = f" and {words.short_count(found.trainable)} trained"
    return f"{words.short_count(found.parameters)} parameters{trained} ({found.source})"


def _steps(found: Forecast) -> str:
    epoch = f", {words.count(found.steps_per_epoch)} per epoch" if found.steps_per_epoch is not None else ""
    return f"{words.count(found.total_steps)}{epoch} ({words.count(found.rows)} rows to train on)"
