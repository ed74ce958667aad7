"""A run that has everything in it, with fixed times: two attempts, evaluations, answers, a GPU, hostile text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from llmtui.core.runs import events as ev
from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo, write_attempt
from llmtui.core.runs.directory import RunDirectory, RunInfo

BEGIN: Final = 1_700_000_000.0
ID: Final = "20231114-221320-night"
GIB: Final = 1 << 30
UUID: Final = "GPU-3f0c1a52-0000-0000-0000-000000000001"
PRESET: Final = """\
description: A night's run
model:
  name_or_path: someone/llama
  quantization: int8
dataset:
  name_or_path: rows.jsonl
  template: alpaca
  train_on: response
lora:
  r: 8
training:
  num_train_epochs: 3.0
  learning_rate: 0.0003
"""
HOSTILE: Final = "*bold* [click](http://x) <b>html</b> | pipe `tick` \x1b[31mred # hf_abcdefghijklmnop12345"


class _Log:
    """Writes one event file with a clock of its own."""

    def __init__(self, path: Path, m: float) -> None:
        self.path, self.number, self.m = path, 0, m

    def write(self, *events: ev.EventBase, after: float = 1.0) -> None:
        """Append events, each `after` seconds later than the one before."""
        with self.path.open("ab") as file:
            for event in events:
                self.m += after
                stamped = msgspec.structs.replace(event, n=self.number, t=BEGIN + self.m, m=self.m)
                file.write(ev.encode(stamped))
                self.number += 1


def _plan(attempt: int, from_step: int) -> ev.Plan:
    return ev.Plan(
        attempt=attempt, from_step=from_step, total_steps=12, epochs=3.0, steps_per_epoch=4, per_device_train_batch_size=4,
        gradient_accumulation_steps=2, processes=1, effective_batch=8, warmup_steps=1, train_rows=32, val_rows=8,
        dropped={"empty output": 2, "a|b": 1}, train_tokens=900, tokens_per_epoch=2_000, trainable_parameters=4_194_304,
        total_parameters=6_876_176_384, dtype="bfloat16", attention="sdpa", quantization="int8",
        device="NVIDIA GeForce RTX 4060 Ti", data_hash="d41d8cd98f00b204", base_model="someone/llama",
        notes=["pad token: <unk>", ""],
    )  # fmt: skip


def _steps(first: int, last: int) -> list[ev.EventBase]:
    return [
        ev.Step(step=n, epoch=n / 4, loss=3.0 - n / 8, learning_rate=3e-4, grad_norm=1.0, tokens=500, seconds=1.0)
        for n in range(first, last + 1)
    ]


def _sample(step: int, text: str) -> ev.Sample:
    return ev.Sample(step=step, index=0, prompt="What is\nthe time? *now*", text=text, tokens=8, seconds=0.2)


def _worker(directory: RunDirectory) -> None:
    log = _Log(directory.events, 100.0)
    log.write(
        ev.WorkerStart(boot_id="boot", attempt=1, pid=11), ev.PhaseEvent(name="loading_model"), _plan(1, 0),
        _sample(0, HOSTILE), ev.PhaseEvent(name="training"), *_steps(1, 6),
    )  # fmt: skip
    log.write(ev.Checkpoint(step=4, path="checkpoints/checkpoint-4", bytes=50 << 20, seconds=0.5), after=0.0)
    log.write(ev.WorkerStart(boot_id="boot", attempt=2, pid=12), after=60.0)
    memory = ev.MemoryGpu(index=0, uuid=UUID, weights=7 * GIB, peak_allocated=10 * GIB, peak_reserved=11 * GIB)
    log.write(
        ev.PhaseEvent(name="loading_model"), _plan(2, 4), ev.PhaseEvent(name="training"), *_steps(5, 8),
        ev.PhaseEvent(name="evaluating"),
        ev.Eval(step=8, loss=1.5, perplexity=4.4817, accuracy=0.61, rows=8, tokens=400, seconds=1.0, best=True),
        ev.PhaseEvent(name="training"), *_steps(9, 11),
        ev.Step(step=12, epoch=3.0, loss=None, learning_rate=0.0, tokens=500, seconds=1.0, bad="nan"),
        ev.Eval(step=12, loss=1.75, perplexity=5.7546, accuracy=0.5, rows=8, tokens=400, seconds=1.0),
        ev.BatchSize(step=9, per_device_train_batch_size=2, gradient_accumulation_steps=4, effective_batch=8,
                     cause="out of GPU memory"),
        ev.Checkpoint(step=12, path="checkpoints/checkpoint-12", bytes=50 << 20, seconds=0.5),
        _sample(12, "twelve\no'clock"), ev.WarningEvent(code="x", text="a | warning with <html>"),
        ev.Memory(phase="finalizing", gpus=[memory]),
        ev.GpuFinal(gpus=[ev.HardwareGpu(index=3, uuid=UUID, name="NVIDIA GeForce RTX 4060 Ti", used=12 * GIB,
                                         total=16 * GIB)]),
        ev.Result(path="adapter", kind="adapter", hash="0123456789abcdef", step=12, bytes=16 << 20),
        ev.Exit(outcome="finished", step=12),
    )  # fmt: skip


def _supervisor(directory: RunDirectory) -> None:
    log = _Log(directory.monitor, 99.0)
    peak = ev.HardwarePeak(index=3, uuid=UUID, name="NVIDIA GeForce RTX 4060 Ti", used=13 * GIB, this_run=12 * GIB,
                           total=16 * GIB)  # fmt: skip
    log.write(
        ev.SupervisorStart(boot_id="boot", pid=10), ev.StateEvent(state="running"), ev.HardwarePeaks(gpus=[peak]),
        ev.StateEvent(state="finished", exit_code=0),
    )  # fmt: skip


def make_run(runs: Path, run_id: str = ID) -> RunDirectory:
    """The run below `runs`."""
    directory = RunDirectory(runs / run_id)
    for folder in (directory.attempts, directory.requests, directory.checkpoints):
        folder.mkdir(parents=True, exist_ok=True)
    directory.preset.write_text(PRESET)
    info = RunInfo(
        id=run_id, name="night", preset="mine", created=BEGIN, description="A night's *run*", host="box", user="me",
        command=["llmtui", "run", "mine", "--name", "night; rm -rf *"], llmtui="0.1.0",
    )  # fmt: skip
    directory.info_file.write_bytes(msgspec.json.encode(info))
    card = AttemptGpu(index=3, uuid=UUID, name="NVIDIA GeForce RTX 4060 Ti")
    for number, step in ((1, None), (2, 4)):
        write_attempt(
            directory,
            AttemptInfo(
                attempt=number, started=BEGIN + 100 * number, checkpoint="checkpoints/checkpoint-4" if step else None,
                from_step=step, gpus=[card], driver="580.95", versions={"torch": "2.11.0", "peft": "0.21.0"},
                git={"commit": "abc123", "changed": True}, python="3.12.3", hostname="box",
            ),
        )  # fmt: skip
    _worker(directory)
    _supervisor(directory)
    return directory
