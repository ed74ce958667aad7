"""`llmtui gpus`: the cards and who uses them."""

from __future__ import annotations

import typer

from llmtui.core import words
from llmtui.tui.commands.options import Json
from llmtui.tui.commands.output import columns, say, say_json


def gpus(as_json: Json = False) -> None:
    """The NVIDIA cards, their memory, and the processes on them."""
    import msgspec

    from llmtui.core.hardware.fit import machine_sentence
    from llmtui.core.hardware.nvml import NvmlReader
    from llmtui.core.process.cards import is_claimed

    reader = NvmlReader()
    cards, note = reader.sample(())
    processes, sentence = reader.processes(), machine_sentence(reader)
    if as_json:
        listed = [{"gpu": index, "pid": pid, "bytes": size} for index, pid, size in processes]
        say_json({"driver": reader.driver, "note": note, "advice": sentence, "processes": listed,
                  "gpus": [msgspec.to_builtins(card) | {"claimed": is_claimed(card)} for card in cards]})  # fmt: skip
        return
    if not cards:
        say(note or "no GPU")
        return
    rows = [
        [str(c.index), c.name, "lost" if c.lost else words.size(c.used), words.size(c.total),
         _with(c.utilization_gpu, "%"), _with(c.temperature, "°C"), _with(c.power, "W"),
         "a run" if is_claimed(c) else ""]
        for c in cards
    ]  # fmt: skip
    say(columns(("GPU", "name", "used", "of", "busy", "temp", "power", "claimed by"), rows, right=(2, 3, 4, 5, 6)))
    for index, pid, size in processes:
        say(f"  GPU {index}: process {pid} (the host's number) holds {words.size(size)}")
    if sentence:
        say(sentence, error=True)


def _with(value: float | None, unit: str) -> str:
    return words.UNKNOWN if value is None else f"{value:.0f} {unit}"


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(gpus)
