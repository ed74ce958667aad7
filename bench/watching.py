"""What a watching terminal costs: CPU and bytes while a run steps five times a second, and while nothing happens."""

from __future__ import annotations

import math
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.measure import table
from bench.terminal import Terminal
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory, create_run
from llmtui.core.runs.log import EventWriter

_SECONDS = 20.0


def _live_run(home: Path) -> RunDirectory:
    runs = home / "runs"
    runs.mkdir(parents=True)
    return create_run(
        runs, "task: finetune\n", name="live", preset_name="bench", task="finetune", description="", command=[]
    )


def _write_steps(directory: RunDirectory, stop: threading.Event) -> None:
    """Events as a worker and a supervisor write them: 5 steps and 1 hardware sample a second."""
    with EventWriter(directory.events) as events, EventWriter(directory.monitor) as monitor:
        monitor.write(ev.SupervisorStart(boot_id=boot_id(), pid=1))
        monitor.write(ev.StateEvent(state="running"))
        events.write(ev.WorkerStart(boot_id=boot_id(), attempt=1, pid=1))
        events.write(
            ev.Plan(attempt=1, from_step=0, total_steps=100_000, epochs=3, steps_per_epoch=33_334,
                    per_device_train_batch_size=8, gradient_accumulation_steps=1, processes=1, effective_batch=8,
                    warmup_steps=0, train_rows=1, val_rows=1, trainable_parameters=1, total_parameters=2,
                    dtype="bfloat16", attention="sdpa")
        )  # fmt: skip
        events.write(ev.PhaseEvent(name="training"))
        step = 0
        while not stop.wait(0.2):
            step += 1
            events.write(ev.Step(step=step, epoch=step / 33_334, loss=2 + math.sin(step / 9), learning_rate=3e-4,
                                 grad_norm=0.7, tokens=1100, seconds=0.2))  # fmt: skip
            if step % 5 == 0:
                gpu = ev.HardwareGpu(index=0, uuid="GPU-0", name="NVIDIA H200", used=(20 + step % 3) << 30,
                                     total=140 << 30, this_run=19 << 30, others=1 << 30,
                                     utilization_gpu=90 + step % 7)  # fmt: skip
                busy = float(step % 50)
                monitor.write(ev.Hardware(gpus=[gpu], cpu_percent=busy, ram_used=3 << 30, ram_total=8 << 30))


def _cost(home: Path, directory: RunDirectory, live: bool) -> tuple[float, float, float]:
    """Percent of a core, bytes a second, resident MB."""
    stop = threading.Event()
    command = [str(Path(sys.executable).parent / "llmtui"), "attach", directory.id]
    with locks.take(directory.supervisor_lock), locks.take(directory.worker_lock):
        writer = threading.Thread(target=_write_steps, args=(directory, stop)) if live else None
        if writer:
            writer.start()
        try:
            with Terminal(command, rows=50, columns=200, env={"LLMTUI_HOME": str(home)}) as terminal:
                terminal.wait_for("live")
                terminal.read_for(3.0)
                cpu, begin = terminal.cpu_seconds(), time.perf_counter()
                size = terminal.read_for(_SECONDS)
                seconds = time.perf_counter() - begin
                return (
                    100 * (terminal.cpu_seconds() - cpu) / seconds,
                    size / seconds,
                    terminal.rss() / (1 << 20),
                )
        finally:
            stop.set()
            if writer:
                writer.join()


def main() -> str:
    """Markdown rows: watching and idle."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        directory = _live_run(home)
        for name, live, budget in (("watching, 5 steps/s", True, "≤ 5 %, ≤ 20 kB/s"), ("idle", False, "≤ 1 %")):
            percent, size, megabytes = _cost(home, directory, live)
            rows.append([name, f"{percent:.1f} %", f"{size / 1000:.1f} kB/s", f"{megabytes:.0f}", budget])
    return table(["TUI at 200×50", "of a core", "output", "RSS MB", "budget"], rows)


if __name__ == "__main__":
    print(main())
