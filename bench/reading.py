"""Opening a long run: seconds and memory for 100 000 and 1 000 000 steps, beside bare msgspec decoding."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import interleaved, table
from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import create_run

_BARE = (
    "import sys, msgspec; from llmtui.core.runs.events import Event\n"
    "decode = msgspec.json.Decoder(Event).decode\n"
    "print(sum(1 for line in open(sys.argv[1], 'rb') if decode(line)))\n"
)


def _write(folder: Path, steps: int) -> Path:
    directory = create_run(
        folder,
        "task: finetune\n",
        name=f"long-{steps}",
        preset_name="bench",
        task="finetune",
        description="",
        command=[],
    )
    with directory.events.open("wb") as file:
        for n in range(steps):
            step = ev.Step(n=n, t=1e9 + n, m=n / 10, step=n + 1, epoch=n / steps, loss=1.2345, learning_rate=2.9e-4,
                           grad_norm=0.731, tokens=1109, trained_tokens=1109, seconds=0.1)  # fmt: skip
            file.write(ev.encode(step))
    return directory.path


def _own(path: Path) -> tuple[float, float]:
    """Seconds and peak MB of reading a run whole, in a fresh process."""
    code = (
        "import sys, time, resource; from pathlib import Path; begin = time.perf_counter()\n"
        "from llmtui.core.runs.reader import read_state; from llmtui.core.runs.directory import RunDirectory\n"
        "state = read_state(RunDirectory(Path(sys.argv[1])))\n"
        "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    seconds, megabytes = out.split()
    return float(seconds), float(megabytes)


def _bare(path: Path) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", _BARE, str(path / "events.jsonl")], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> str:
    """Markdown rows: steps, seconds, ratio to bare decoding, MB."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for steps, budget in ((100_000, "≤ 1 s"), (1_000_000, "≤ 5 s, ≤ 200 MB")):
            path = _write(Path(folder), steps)
            memory: list[float] = []

            def own(path: Path = path, memory: list[float] = memory) -> float:
                seconds, megabytes = _own(path)
                memory.append(megabytes)
                return seconds

            timings = interleaved({"bare": lambda path=path: _bare(path), "own": own}, blocks=5)
            ratio = timings["own"].median / timings["bare"].median
            rows.append([f"{steps:,}", f"{timings['own'].median:.2f}", timings["own"].spread,
                         f"{ratio:.2f} × bare decoding", f"{max(memory):.0f}", budget])  # fmt: skip
    return table(["opening a run, steps", "median s", "spread", "ratio", "peak MB", "budget"], rows)


if __name__ == "__main__":
    print(main())
