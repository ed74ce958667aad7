"""`llmtui data PRESET`: what the model will be trained on, counted and shown."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from llmtui.core import words
from llmtui.tui.commands.options import Json, Sets
from llmtui.tui.commands.output import columns, plain, say, say_coloured, say_json
from llmtui.tui.commands.progress import progress
from llmtui.tui.commands.row_text import legend, row_text

if TYPE_CHECKING:
    from llmtui.core.data.preview import Preview, PreviewRow
    from llmtui.core.data.statistics import Lengths, Statistics

_BAR: Final = 40


def data(
    preset: Annotated[str, typer.Argument(help="A preset's name, or a path ending in .yaml.")],
    sets: Sets = None,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to show.")] = 2,
    start: Annotated[int, typer.Option("--from", min=1, help="The first row to show.")] = 1,
    side: Annotated[Literal["train", "val"], typer.Option("--side", help="Training or validation rows.")] = "train",
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Show rows that hold a text.")] = "",
    as_json: Json = False,
) -> None:
    """What the model will be trained on, counted and shown.

    Rows by source and by the reason why they are not used, lengths, padding, steps, and rows as they will be fed.

    The rows are kept, and the run starts with them.
    """
    from llmtui.core.data.preview import Preview
    from llmtui.core.data.statistics import statistics
    from llmtui.core.preset import load_preset
    from llmtui.core.process.preparing import prepared_data

    loaded = load_preset(preset, sets or ())
    with progress(silent=as_json) as show:
        prepared = prepared_data(loaded, show)
    counted, preview = statistics(prepared, loaded.preset), Preview(prepared)
    shown = list(_chosen(preview, side, rows, start - 1, find))
    if as_json:
        from llmtui.core.data.fed import first_batches

        fed = first_batches(prepared, loaded.preset)
        say_json({
            **dataclasses.asdict(counted), "notes": prepared.warnings, "data_hash": prepared.data_hash,
            "first_batches": {"batches": fed.batches, "hash": fed.hexdigest()},
            "samples": [_as_json(row) for row in shown],
        })  # fmt: skip
        return
    for line in [*_numbers(counted), "", *_histogram(counted.lengths), "", *_padding(counted)]:
        say(line)
    for note in prepared.warnings:
        say(f"note  {note}")
    if shown:
        say(f"\n{legend()}")
    for row in shown:
        say(_heading(row, preview.rows(row.side)))
        say_coloured(row_text(row))


def _chosen(preview: Preview, side: Literal["train", "val"], rows: int, start: int, find: str) -> list[PreviewRow]:
    if not find:
        return [preview.row(side, index) for index in range(start, min(start + rows, preview.rows(side)))]
    found: list[PreviewRow] = []
    at: int | None = preview.find(side, find, start)
    while at is not None and len(found) < rows and all(at != row.index for row in found):
        found.append(preview.row(side, at))
        at = preview.find(side, find, at + 1)
    return found


def _as_json(row: PreviewRow) -> dict[str, Any]:
    pieces = [{"text": piece.text, "kind": piece.kind, "trained": piece.trained} for piece in row.pieces]
    return {**dataclasses.asdict(row), "pieces": pieces}


def _numbers(counted: Statistics) -> list[str]:
    """The counts, one to a line."""
    lines = []
    for source in counted.sources:
        lost = "".join(f", {words.count(n)} dropped: {reason}" for reason, n in source.dropped.items())
        lines.append(f"source      {plain(source.name)}: {words.count(source.rows)} rows{lost}")
    for reason, rows in counted.dropped.items():
        lines.append(f"dropped     {words.count(rows)} rows: {reason}")
    for step, rows in counted.cleaned.items():
        lines.append(f"cleaned     {words.count(rows)} rows: {step}")
    for name, side in (("training", counted.train), ("validation", counted.val)):
        if side is not None:
            lines.append(
                f"{name:<12}{words.count(side.rows)} rows, {words.count(side.tokens)} tokens, "
                f"{words.count(side.trained_tokens)} trained ({side.trained_tokens / max(1, side.tokens):.0%}); "
                f"{words.count(side.rows_cut)} cut, {words.count(side.rows_without_end)} without an end token"
            )
            lines += [f"  label     {plain(label)}: {words.count(rows)} rows" for label, rows in side.labels.items()]
    lines.append(
        f"steps       {words.count(counted.total_steps)}, {words.count(counted.steps_per_epoch)} an epoch of "
        f"{words.count(counted.tokens_per_epoch)} tokens, {counted.effective_batch} rows a step"
    )
    return lines


def _histogram(lengths: Lengths) -> list[str]:
    most = max(bin_.rows for bin_ in lengths.bins) or 1
    heading = (
        f"tokens a row: mean {lengths.mean:.0f}, half of the rows up to {words.count(lengths.median)}, 95 % up to "
        f"{words.count(lengths.p95)}, longest {words.count(lengths.longest)}"
    )
    lines = [heading]
    for bin_ in lengths.bins:
        bar = plain("█") * round(_BAR * bin_.rows / most) if bin_.rows else ""
        lines.append(
            f"{words.count(bin_.first):>7}-{words.count(bin_.last):<7}{words.count(bin_.rows):>9}  {bar}".rstrip()
        )
        if bin_.last == lengths.max_length and lengths.longer:
            lines.append(
                f"  max_length {words.count(lengths.max_length)}: {words.count(lengths.longer)} rows are longer"
            )
    return lines


def _padding(counted: Statistics) -> list[str]:
    rows = [
        [name, f"{share:.0%}", "the preset's" if name == counted.strategy else ""]
        for name, share in counted.padding.items()
    ]
    return columns(("batches", "padding", ""), rows, right=(1,)).splitlines()


def _heading(row: PreviewRow, rows: int) -> str:
    facts = [f"{row.tokens} tokens", f"{row.trained} trained"]
    facts += ["cut"] * row.cut + ["no end token"] * (not row.ended) + ([f"label {row.label}"] if row.label else [])
    return f"\n-- {row.side} row {row.index + 1} of {rows}, {row.place}: {', '.join(facts)} --"


def add(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(data)
