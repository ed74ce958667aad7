"""Makes the fixed run directories under `tests/data/runs` that screens are tested on.

    python -m tests.data.make_runs

They are kept as files: they are also the test that old runs stay readable. Times and the boot are invented.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from llmtui.core.runs import events as ev
from llmtui.core.runs import log
from llmtui.core.runs.directory import RunDirectory, RunInfo

RUNS = Path(__file__).parent / "runs"
BOOT = "11111111-2222-3333-4444-555555555555"
NIGHT = 1_780_254_000.0  # 2026-05-31 19:00 UTC
GIB = 1 << 30


class Clock:
    """Wall and boot time that move only when told."""

    def __init__(self, start: float) -> None:
        self.t, self.m = start, 5000.0 + (start - NIGHT)

    def go(self, seconds: float) -> None:
        self.t += seconds
        self.m += seconds


class Run:
    """One run directory while it is made."""

    def __init__(
        self, run_id: str, *, preset: str, start: float = NIGHT, description: str = "", name: str = ""
    ) -> None:
        self.directory = RunDirectory(RUNS / run_id)
        self.clock = Clock(start)
        self.random = random.Random(run_id)
        for folder in (self.directory.attempts, self.directory.requests, self.directory.checkpoints):
            folder.mkdir(parents=True)
            (folder / ".keep").touch()
        info = RunInfo(
            id=run_id,
            name=name or run_id[16:],
            preset=preset,
            created=start,
            description=description,
            command=["llmtui", "run", preset],
            host="box",
            user="yuki",
            llmtui="0.1.0",
        )
        self.directory.info_file.write_bytes(msgspec.json.format(msgspec.json.encode(info)))
        self.directory.preset.write_text(f"description: {description or 'a test'}\ntask: finetune\n", encoding="utf-8")
        self._writers: dict[Path, log.EventWriter] = {}

    def worker(self, event: ev.EventBase) -> None:
        self._write(self.directory.events, event)

    def supervisor(self, event: ev.EventBase) -> None:
        self._write(self.directory.monitor, event)

    def _write(self, path: Path, event: ev.EventBase) -> None:
        writer = self._writers.get(path) or self._writers.setdefault(path, log.EventWriter(path))
        with (
            mock.patch.object(log.time, "time", lambda: self.clock.t),
            mock.patch.object(log, "boot_seconds", lambda: self.clock.m),
        ):
            writer.write(event)

    def output(self, text: str) -> None:
        with open(self.directory.output, "a", encoding="utf-8", newline="") as file:
            file.write(text)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    # --- the usual course

    def begin(self, attempt: int = 1, from_step: int | None = None) -> None:
        self.supervisor(ev.SupervisorStart(boot_id=BOOT, pid=4000 + attempt))
        self.supervisor(ev.Attempt(attempt=attempt, from_step=from_step, pid=5000 + attempt))
        self.supervisor(ev.StateEvent(state="running"))
        self.worker(ev.WorkerStart(boot_id=BOOT, attempt=attempt, pid=5000 + attempt))
        self.worker(ev.PhaseEvent(name="loading_model"))
        self.clock.go(9)

    def plan(self, total: int, *, attempt: int = 1, from_step: int = 0, **changed: Any) -> None:
        values: dict[str, Any] = {
            "attempt": attempt,
            "from_step": from_step,
            "total_steps": total,
            "epochs": 3.0,
            "steps_per_epoch": -(-total // 3),
            "per_device_train_batch_size": 8,
            "gradient_accumulation_steps": 1,
            "processes": 1,
            "effective_batch": 8,
            "warmup_steps": 0,
            "train_rows": 13_015,
            "val_rows": 2_000,
            "trainable_parameters": 4_194_304,
            "total_parameters": 6_876_176_384,
            "dtype": "bfloat16",
            "attention": "sdpa",
            "quantization": "int8",
            "device": "cuda",
        }
        self.worker(ev.Plan(**(values | changed)))
        self.worker(ev.PhaseEvent(name="training", total=total))

    def steps(
        self,
        first: int,
        last: int,
        *,
        seconds: float = 0.2,
        nan_at: tuple[int, ...] = (),
        loss_of: Any = None,
        per_epoch: int = 100,
    ) -> None:
        for step in range(first, last + 1):
            self.clock.go(seconds)
            loss = loss_of(step) if loss_of else 2.4 * math.exp(-step / 80) + 1.1 + self.random.gauss(0, 0.09)
            bad = "nan" if step in nan_at else ""
            self.worker(
                ev.Step(
                    step=step,
                    epoch=round(step / per_epoch, 4),
                    loss=None if bad else round(loss, 6),
                    learning_rate=round(3e-4 * (1 - step / 2000), 9),
                    grad_norm=round(0.4 + self.random.random(), 4),
                    tokens=1200 + self.random.randrange(300),
                    trained_tokens=1200,
                    seconds=seconds,
                    bad=bad,
                )
            )

    def evaluate(self, step: int, loss: float | None, *, seconds: float = 6.0) -> None:
        self.worker(ev.PhaseEvent(name="evaluating", total=250))
        self.clock.go(seconds)
        self.worker(
            ev.Eval(
                step=step,
                loss=loss,
                perplexity=None if loss is None else round(math.exp(loss), 4),
                accuracy=0.61,
                rows=2000,
                tokens=180_000,
                seconds=seconds,
                best=True,
            )
        )
        self.worker(ev.PhaseEvent(name="training"))

    def save(self, step: int, reason: str = "save_steps") -> None:
        self.worker(ev.PhaseEvent(name="saving"))
        self.clock.go(1.4)
        self.worker(
            ev.Checkpoint(
                step=step, path=f"checkpoints/checkpoint-{step}", bytes=51_380_224, seconds=1.4, reason=reason
            )
        )
        self.worker(ev.PhaseEvent(name="training"))

    def sample(self, step: int, index: int, prompt: str, text: str) -> None:
        self.worker(ev.Sample(step=step, index=index, prompt=prompt, text=text, tokens=len(text) // 3, seconds=1.2))

    def hardware(self, gpus: int = 1, *, note: str = "", lost: int | None = None) -> None:
        cards = [_card(index, lost=index == lost) for index in range(gpus)]
        self.supervisor(
            ev.Hardware(
                gpus=cards,
                cpu_percent=37.0,
                worker_cpu_percent=101.0,
                ram_used=21 * GIB,
                ram_total=64 * GIB,
                worker_rss=6 * GIB,
                disk_free=312 * GIB,
                disk_total=900 * GIB,
                note=note,
            )
        )

    def end(
        self, state: Any, step: int, *, cause: str = "", kind: str = "", hint: str = "", code: int | None = None
    ) -> None:
        outcome: Any = state if state in ("finished", "stopped", "failed") else "failed"
        self.worker(ev.Exit(outcome=outcome, step=step, cause=cause))
        self.clock.go(1)
        self.supervisor(ev.StateEvent(state=state, cause=cause, kind=kind, hint=hint, exit_code=code))
        self.close()


def _card(index: int, *, lost: bool = False) -> ev.HardwareGpu:
    if lost:
        return ev.HardwareGpu(index=index, uuid=f"GPU-{index}", name="NVIDIA A100-SXM4-80GB", lost=True)
    used = (31 + 3 * index) * GIB
    return ev.HardwareGpu(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA A100-SXM4-80GB",
        used=used,
        total=80 * GIB,
        this_run=used - 2 * GIB,
        others=2 * GIB,
        utilization_gpu=97 - index,
        utilization_memory=60,
        power=388.0,
        power_limit=400.0,
        temperature=61 + index,
    )


@contextmanager
def _run(run_id: str, **info: Any) -> Iterator[Run]:
    run = Run(run_id, **info)
    yield run
    run.close()


DOLLY = "OpenCALM-7B, 8-bit LoRA on databricks-dolly-15k-ja"


def running() -> None:
    """A live run on one card, in the middle of its second epoch."""
    with _run("20260531-190000-evening", preset="opencalm-7b-dolly-ja", description=DOLLY) as run:
        run.begin()
        run.output("loading cyberagent/open-calm-7b\n")
        run.output("".join(f"\rshards {n}/3" for n in range(1, 4)) + "\n")
        run.plan(300)
        run.sample(0, 0, "日本で一番高い山は？", "日本で一番高い山は、日本で一番高い山です。")
        run.sample(0, 1, "Name three colours.", "Name three colours. Name three colours.")
        run.steps(1, 100)
        run.evaluate(100, 1.832)
        run.sample(100, 0, "日本で一番高い山は？", "富士山です。標高は3,776メートルです。")
        run.sample(100, 1, "Name three colours.", "Red, green and blue.")
        run.save(100)
        run.steps(101, 180)
        run.hardware(1)
        run.worker(ev.WarningEvent(code="truncated_rows", text="12 rows were longer than 256 tokens and were cut"))
        run.output("{'loss': 1.31, 'epoch': 1.8}\n")


def many_cards() -> None:
    """A live run on eight cards, one of them lost."""
    with _run("20260531-191500-eight-cards", preset="llama-3.1-8b-zero2") as run:
        run.begin()
        run.plan(2_000, processes=8, effective_batch=64)
        run.steps(1, 60, seconds=1.5)
        run.hardware(8, lost=5)


def finished() -> None:
    """Finished on the CPU."""
    with _run("20260530-201500-demo", preset="demo", start=NIGHT - 81_900) as run:
        run.begin()
        run.plan(
            240,
            total_parameters=3_100_000,
            trainable_parameters=3_100_000,
            dtype="float32",
            quantization="none",
            device="cpu",
            train_rows=1_720,
            val_rows=80,
        )
        run.sample(0, 0, "Where is the lighthouse?", "the the of of the")
        run.steps(1, 120)
        run.evaluate(120, 1.9)
        run.save(120)
        run.steps(121, 240)
        run.evaluate(240, 1.24)
        run.sample(240, 0, "Where is the lighthouse?", "On the north cape of the island.")
        run.save(240)
        run.hardware(0)
        run.worker(ev.Result(path="model", kind="model", hash="9f8e7d", step=240, bytes=12_400_000))
        run.output("done\n")
        run.end("finished", 240, code=0)


def failed() -> None:
    """Out of GPU memory at a long row."""
    with _run("20260530-221500-too-big", preset="rinna-3.6b-dolly-ja", start=NIGHT - 74_700) as run:
        run.begin()
        run.plan(900)
        run.steps(1, 37)
        run.hardware(1)
        run.worker(ev.ErrorEvent(kind="cuda_oom", message="out of GPU memory in step 38", hint="a smaller batch"))
        run.output(
            'Traceback (most recent call last):\n  File "train.py", line 3\n'
            "torch.OutOfMemoryError: CUDA out of memory.\n"
        )
        run.end(
            "failed",
            37,
            cause="out of GPU memory in step 38: 79.1 of 80 GiB in use, 2.0 GiB of it by others",
            kind="cuda_oom",
            hint="set training.per_device_train_batch_size to 4",
            code=1,
        )


def diverged() -> None:
    """The loss became NaN; stopped by the user."""
    with _run("20260530-231500-diverged", preset="smollm2-135m", start=NIGHT - 71_100) as run:
        run.begin()
        run.plan(500)
        run.steps(1, 150, nan_at=(90, 91, 150), loss_of=lambda step: 2.0 + (0.0002 * max(0, step - 60)) ** 2 * 900)
        run.hardware(1)
        run.save(150, reason="stop")
        run.end("stopped", 150, cause="stopped as asked, with a checkpoint at step 150", code=4)


def resumed() -> None:
    """Killed, resumed from a checkpoint, killed again: interrupted."""
    with _run("20260531-020000-resumed", preset="demo", start=NIGHT - 61_200) as run:
        run.begin()
        run.plan(400)
        run.steps(1, 60)
        run.save(50)
        run.steps(61, 77)
        run.clock.go(600)
        run.begin(attempt=2, from_step=50)
        run.plan(400, attempt=2, from_step=50)
        run.steps(51, 90)
        run.hardware(0)


def hostile() -> None:
    """Names, texts and logs that other programs stumble over."""
    name = "[@click=app.quit]q[/]"
    with _run(
        "20260531-030000-学習テスト①-👨‍👩‍👧",
        preset="[/usr/bin/x]",
        start=NIGHT - 57_600,
        name=name,
        description="[red]x[/red] \x1b]0;title\x07 [/]",
    ) as run:
        run.begin()
        run.plan(50)
        run.sample(
            0, 0, "[link=x]x[/link] \x1b[2J\x9b2J ｶﾅ", "loss=[nan] [/bad] \u202etxt.exe \x1b]52;c;cm0gLXJmIH4K\x07"
        )
        run.steps(1, 20)
        run.worker(ev.WarningEvent(code="[/x]", text="[bold]not bold[/bold] \x1b[31mred\x1b[0m torch.Size([4, 32])"))
        run.output(
            "path [/usr/bin/x] done\nloss=[nan]\n[red]x\n[/]\n[@click=app.quit]q[/]\n"
            "torch.Size([4, 32])\n[INFO|trainer.py:1] ok\n"
        )
        run.output(
            "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[2J\x1b]0;owned\x07\x9b31mC1\x1b[6n\x00\x07bell 進捗 100%|██| ｶﾅ 👨‍👩‍👧\n"
        )
        run.end("failed", 20, cause="boom [/x] \x1b[2J [@click=app.quit]q[/]", kind="python", hint="[/]", code=1)


def damaged() -> None:
    """`run.json` was cut off by a full disk."""
    with _run("20260531-040000-damaged", preset="demo", start=NIGHT - 54_000) as run:
        run.begin()
    run.directory.info_file.write_text('{"id": "2026053', encoding="utf-8")


def queued() -> None:
    """Waits for its card (its supervisor's lock is held by the tests)."""
    with _run("20260531-192000-next", preset="smollm2-135m", start=NIGHT + 1_200) as run:
        run.supervisor(ev.SupervisorStart(boot_id=BOOT, pid=1))
        run.supervisor(ev.StateEvent(state="queued", cause="waits for GPU 0: evening holds it"))


def main() -> None:
    """Make all of them anew."""
    shutil.rmtree(RUNS, ignore_errors=True)
    for make in (running, many_cards, finished, failed, diverged, resumed, hostile, damaged, queued):
        make()


if __name__ == "__main__":
    main()
