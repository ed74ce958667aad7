"""`llmtui evaluate RUN --data FILE`: the result beside its base, scored in a child that imports torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from llmtui.core import words
from llmtui.core.errors import DataError, LlmtuiError, MachineError, RefusedError, RunFailedError, UsageError
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.label_words import label_cells, share
from llmtui.tui.commands.options import Json, Run, the_run_at
from llmtui.tui.commands.output import columns, plain, say, say_json

_SHOW_SECONDS: Final = 0.25
_KINDS: Final[dict[str, type[LlmtuiError]]] = {
    kind.kind: kind for kind in (UsageError, DataError, MachineError, RefusedError)
}
_BY_CODE: Final[dict[int, type[LlmtuiError]]] = {2: DataError, 3: MachineError, 5: RefusedError}


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
    environment = os.environ | _card(directory)
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True, encoding="utf-8",
            errors="replace", env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            answer = _listen(child, Progress(silent=quiet))
            code = child.wait()
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        finally:
            child.kill()  # a child that has ended takes no harm
            child.wait()
        complaints.seek(0)
        last = complaints.read().decode("utf-8", "replace").strip().splitlines()
    if answer is None:
        raise RunFailedError(f"evaluating failed: {last[-1] if last else f'exit code {code}'}", place=directory.id,
                             hint="try it on a machine with more memory")  # fmt: skip
    if "error" in answer:
        wrong = answer["error"]
        kind = _KINDS.get(wrong["kind"]) or _BY_CODE.get(answer["exit_code"], RunFailedError)
        raise kind(wrong["message"], place=wrong["place"], hint=wrong["hint"])
    return answer


def _listen(child: subprocess.Popen[str], progress: Progress) -> dict[str, Any] | None:
    """The last line that is an answer; libraries may print around it."""
    answer = None
    for line in child.stdout or ():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and "progress" in value:
            progress.show(*value["progress"])
        elif isinstance(value, dict):
            answer = value
    progress.end()
    return answer


class Progress:
    """How far the child is, on stderr: one line written over on a terminal, one line for each stage elsewhere."""

    def __init__(self, silent: bool) -> None:
        self._silent, self._over = silent, sys.stderr.isatty()
        self._stage, self._shown, self._width = "", 0.0, 0

    def show(self, stage: str, done: int, total: int | None) -> None:
        """At most four times a second within a stage."""
        now, new = time.monotonic(), stage != self._stage
        if self._silent or not (new or (self._over and now - self._shown > _SHOW_SECONDS)):
            return
        self._stage, self._shown = stage, now
        if not self._over:
            say(f"{stage} …", error=True)
            return
        text = plain(f"{stage} {words.count(done)} of {words.count(total)}" if total else f"{stage} …")
        text = text.replace("\n", " ")
        sys.stderr.write("\r" + text + " " * (self._width - len(text)))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        """Take the line away."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


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
