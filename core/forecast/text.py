"""A forecast as lines for people; every estimate is marked ≈."""

from __future__ import annotations

from llmtui.core import words
from llmtui.core.forecast.estimate import Forecast


def forecast_lines(found: Forecast) -> list[str]:
    """The lines, widest last."""
    lines = [f"model         {words.short_count(found.parameters)} parameters, {_share(found)} ({found.source})"]
    lines.append(f"batch         {found.effective_batch} rows per optimizer step")
    steps = f"{words.count(found.total_steps)} steps, {words.count(found.steps_per_epoch)} per epoch"
    lines.append(f"steps         {steps} ({words.count(found.rows)} rows to train on)")
    if found.parts:
        lines.append("memory        ≈ " + " + ".join(f"{part.name} {words.size(part.bytes)}" for part in found.parts))
        lines.append(
            f"              ≈ {words.size(found.allocated)} allocated, {words.size(found.process)} with the process's own"
        )
        lines.append(f"cache         ≈ {words.size(found.cache_bytes_per_token)} per token when generating (16 bit)")
        lines.append(
            f"disk          ≈ {words.size(found.disk_bytes)} ({words.size(found.checkpoint_bytes)} per checkpoint)"
        )
    for card in found.gpus:
        lines.append(
            f"GPU {card.index}         {card.verdict}: {card.name}, {words.size(card.free)} free of {words.size(card.total)}"
        )
    if not found.gpus:
        lines.append("GPU           none here to judge against")
    lines += [f"note          {note}" for note in found.notes]
    return lines


def _share(found: Forecast) -> str:
    if found.parameters is None or found.trainable is None:
        return "– trainable"
    return f"{words.short_count(found.trainable)} trainable"
