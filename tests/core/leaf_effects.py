"""What a preset comes to, key by key: the arguments of the libraries, the tokens, a whole small training run,
a supervised one, the choice of cards. Two presets that come to the same cannot be told apart by any run.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from llmtui.core.preset import LoadedPreset, Preset, parse_preset, resolve
from llmtui.core.runs import events as ev
from llmtui.core.runs.attempt import AttemptInfo
from llmtui.core.runs.directory import RunDirectory, create_run

_VOLATILE: Final = frozenset({"n", "t", "m", "seconds", "boot_id", "pid", "hash", "bytes"})


def arguments(preset: Preset) -> dict[str, Any]:
    """Everything the libraries are given, on a card that does bfloat16."""
    from llmtui.core.worker import arguments as made
    from llmtui.core.worker.precision import choose_precision

    precision = choose_precision(preset, "cuda", (8, 0))
    return {
        "training": made.training_arguments(
            preset, output="out", precision=precision, evaluate=True, device="cuda", total_steps=1000
        ),
        "lora": made.lora_config(preset),
        "quantization": made.quantization_config(preset, precision),
        "load": made.load_arguments(preset, precision),
        "generation": made.generation_arguments(preset),
    }


# --- data ---------------------------------------------------------------------------------------------


def tokens(preset: Preset, folder: Path, tokenizer: Any) -> dict[str, Any]:
    """What the data becomes: hash of ids and labels, rows on each side, rows dropped by reason."""
    from llmtui.core.data import prepare

    made = prepare(preset, tokenizer, base_folder=folder, max_positions=None, on_progress=lambda *_: None)
    return {
        "hash": made.data_hash,
        "train": len(made.train),
        "val": len(made.val) if made.val is not None else None,
        "dropped": made.dropped,
    }


def hub_request(preset: Preset, folder: Path, tokenizer: Any, patch: pytest.MonkeyPatch) -> list[Any]:
    """What the hub is asked for; there is none here."""
    import datasets

    asked: list[Any] = []

    def load_dataset(*positional: Any, **named: Any) -> Any:
        asked.append((positional, named))
        return datasets.Dataset.from_list([{"instruction": "a", "output": "b"}] * 8)

    patch.setattr(datasets, "load_dataset", load_dataset)
    tokens(preset, folder, tokenizer)
    return asked


def answer_prompt(preset: Preset, tokenizer: Any) -> str:
    """The text a sample prompt is put into."""
    from llmtui.core.data import prompt_text

    return prompt_text(preset.dataset.template, tokenizer, "hello", preset.generation.system)


def new_run(loaded: LoadedPreset, runs: Path) -> RunDirectory:
    """A run directory with this preset."""
    runs.mkdir(exist_ok=True)
    text = resolve(loaded)
    return create_run(runs, text, name="leaf", preset_name="leaf", task="finetune", description="", command=[])


# --- training -----------------------------------------------------------------------------------------


def training(loaded: LoadedPreset, runs: Path, patch: pytest.MonkeyPatch, *, room_for_rows: int | None) -> list[Any]:
    """A whole attempt in this process: its events, the lines of its output, the shapes of its batches, what is left on disk.

    Args:
        room_for_rows: more rows than this in one micro-batch are out of memory.
    """
    import torch
    from transformers import Trainer

    from llmtui.core.worker.feeding import CountingCollator
    from llmtui.core.worker.finetune import Finetune
    from llmtui.core.worker.session import Session

    directory = new_run(loaded, runs)
    shapes: list[Any] = []
    collate, step = CountingCollator.__call__, Trainer.training_step

    def noting(self: Any, features: Any) -> Any:
        batch = collate(self, features)
        shapes.append(tuple(batch["input_ids"].shape))
        return batch

    def stepping(self: Any, model: Any, inputs: Any, items: Any = None) -> Any:
        if room_for_rows is not None and inputs["input_ids"].shape[0] > room_for_rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return step(self, model, inputs, items)

    patch.setattr(CountingCollator, "__call__", noting)
    patch.setattr(Trainer, "training_step", stepping)
    output, end = io.StringIO(), "finished"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a model more threads only wait for each other
    session = Session(directory, 1)
    preset = parse_preset(directory.preset.read_text("utf-8"), directory.preset).preset  # as a worker reads it
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        try:
            task = Finetune(session, preset, AttemptInfo(attempt=1, started=0.0), "settings")
            task.run()
            end = f"{task.outcome} {task.cause} {task.trainer.model.is_gradient_checkpointing}"
        except Exception as error:
            end = f"{type(error).__name__}: {error}"
        finally:
            session.close()
            torch.set_num_threads(threads)
    patch.undo()
    lines = len(output.getvalue().splitlines())  # what is in them includes times
    return [end, lines, shapes, list(_events(directory)), _left(directory)]


def _events(directory: RunDirectory) -> Iterator[dict[str, Any]]:
    for line in directory.events.read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["type"] not in ("memory", "phase"):
            yield {key: value for key, value in event.items() if key not in _VOLATILE}


def _left(directory: RunDirectory) -> list[str]:
    return sorted(
        f"{path.parent.name} {path.read_text('utf-8')}"
        for path in directory.checkpoints.glob("checkpoint-*/llmtui_state.json")
    )


# --- supervising --------------------------------------------------------------------------------------

# A worker that makes one step; the first attempt then hangs for two seconds or dies, as it is told.
_WORKER: Final = """
import sys, time
from pathlib import Path
from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.log import EventWriter
directory, attempt, what = RunDirectory(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
writer = EventWriter(directory.events)
writer.write(ev.WorkerStart(boot_id="b", attempt=attempt, pid=0))
writer.write(ev.Step(step=attempt, epoch=0.0, loss=1.0, learning_rate=0.0, grad_norm=None, tokens=1, seconds=1.0))
if what == "dies":
    sys.exit(9)
end = time.monotonic() + 2.5
while attempt == 1 and time.monotonic() < end and not list(directory.requests.glob("*.json")):
    time.sleep(0.05)
writer.write(ev.Exit(outcome="finished", step=1))
"""


def supervised(loaded: LoadedPreset, runs: Path, patch: pytest.MonkeyPatch, *, worker: str) -> list[Any]:
    """How a run with this preset is watched: its states, attempts and warnings. `worker` is `dies` or `hangs`."""
    from llmtui.core.process import supervise

    directory = new_run(loaded, runs)

    def command(of: RunDirectory, attempt: int) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(_WORKER), str(of.path), str(attempt), worker]

    patch.setattr(supervise.Supervisor, "_summarize", lambda self: None)
    code = supervise.Supervisor(directory, command, first_pause=0.01).run()
    patch.undo()
    monitor = [json.loads(line) for line in directory.monitor.read_text("utf-8").splitlines()]
    said = [e["state"] for e in monitor if e["type"] == "state"]
    asked = sorted(path.name for path in directory.requests.glob("*.json"))
    return [code, said, [e["code"] for e in monitor if e["type"] == "warning"], len(asked)]


def _card(index: int) -> ev.HardwareGpu:
    return ev.HardwareGpu(index=index, uuid=f"GPU-{index}", name="card", used=0, total=8 << 30)


def cards(loaded: LoadedPreset, runs: Path, patch: pytest.MonkeyPatch) -> list[Any]:
    """Which of two cards a run takes, and how many of them it claims for itself."""
    from llmtui.core.process import cards as claims
    from llmtui.core.process import supervise

    class TwoCards:
        driver, note = None, ""

        def memory(self) -> list[ev.HardwareGpu]:
            return [_card(0), _card(1)]

    directory = new_run(loaded, runs)
    patch.setattr(supervise, "NvmlReader", TwoCards)
    patch.setattr(claims, "CLAIMS", runs / "claims")
    patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    turn = supervise.Supervisor(directory)._cards()
    assert turn is not None
    for lock in turn.locks:
        lock.release()
    patch.undo()
    return [[card.index for card in turn.cards], len(turn.locks)]
