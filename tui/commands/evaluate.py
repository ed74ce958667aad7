"""`llmtui evaluate RUN --data FILE`: the result beside its base, scored in a child that imports torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from llmtui.core import words
from llmtui.core.errors import DataError
from llmtui.core.process.child import ask_child
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.label_words import label_cells, share
from llmtui.tui.commands.options import Json, Run, the_run_at
from llmtui.tui.commands.output import columns, say, say_json
from llmtui.tui.commands.progress import progress


def evaluate(
    run: Run,
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Rows to score on: a file or a folder.")],
    as_json: Json = False,
) -> None:
    """Score a run's result on a file, its base beside it.

    Loss, token accuracy and, with dataset.label, how many labels are answered exactly. RUN@STEP scores a checkpoint.
    """
    directory, step = the_run_at(run, as_json)
    path = data.expanduser().absolute()
    if not path.exists():
        raise DataError("there is no such file", place=str(data), hint="name a file of rows, such as test.jsonl")
    command = [sys.executable, "-P", "-m", "llmtui.core.worker.evaluating", str(directory.path), str(path)]
    answer = _score(command + ([str(step)] if step is not None else []), directory, quiet=as_json)
    if as_json:
        say_json(answer)
    else:
        say(_table(answer))


def _score(command: list[str], directory: RunDirectory, quiet: bool) -> dict[str, Any]:
    """Run the child to its end, showing how far it is.

    Raises:
        LlmtuiError: what the child says is wrong.
    """
    with progress(silent=quiet) as show:
        return ask_child(command, show, what="evaluating", place=directory.id, environment=_card(directory))


def _card(directory: RunDirectory) -> dict[str, str]:
    """The environment that gives the child the card the preset names, else the idlest; empty text is the CPU.

    Raises:
        MachineError: the preset names a card that is not here.
    """
    from llmtui.core.hardware.nvml import NvmlReader
    from llmtui.core.preset import parse_preset
    from llmtui.core.process.cards import candidates

    split = parse_preset(directory.preset.read_text("utf-8"), directory.preset).preset.gpu_split
    reader = NvmlReader()
    ranked = candidates(split, reader.memory(), reader.note)
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ranked[0].uuid if ranked else ""}


def _table(answer: dict[str, Any]) -> str:
    base, tuned = answer["base"], answer["tuned"]
    both = [score for score in (base, tuned) if score is not None]
    head = f"{answer['id']} ({answer['scored']}) on {answer['data']}: {words.count(answer['rows'])} rows"
    dropped = ", ".join(f"{reason} {words.count(count)}" for reason, count in answer["dropped"].items())
    rows = [
        ["loss", *(words.number(score["loss"]) for score in both)],
        ["perplexity", *(words.number(score["perplexity"]) for score in both)],
        ["token accuracy", *(share(score["accuracy"]) for score in both)],
    ]
    if tuned["exact_match"] is not None:
        rows.append(["exact match", *(share(score["exact_match"]) for score in both)])
        cells = [{name: (right, count) for name, right, count in label_cells(score["by_label"])} for score in both]
        for name, (_, count) in cells[-1].items():
            rows.append([f"  {name} ({count} rows)", *(by[name][0] for by in cells)])
    names = ["base", "tuned"] if base is not None else ["tuned"]
    table = columns(["", *names], rows, right=range(1, 1 + len(both)))
    head += f", dropped: {dropped}" if dropped else ""
    return "\n".join([head, table, *(f"note: {note}" for note in answer["notes"] if note)])


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(evaluate)
