"""Preparing data: seconds cold and again, and memory, for 15 000 and 1 000 000 dolly-shaped rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import table

REPOSITORY = Path(__file__).parents[1]
ROWS = (15_000, 1_000_000)


def write_rows(path: Path, rows: int) -> None:
    """Rows of ragged lengths from the demo's sentences, about 60 tokens each with its tokenizer."""
    source = REPOSITORY / "presets" / "demo" / "data" / "dolly-demo.jsonl"
    sentences = [json.loads(line)["output"] for line in source.read_text("utf-8").splitlines()]
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            asked = " ".join(draw.choices(sentences, k=draw.randint(1, 3)))
            answer = " ".join(draw.choices(sentences, k=draw.randint(1, 5)))
            row = {"instruction": f"{number}: {asked}", "input": "", "output": answer, "category": "open_qa"}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def prepare(data: Path, home: Path) -> tuple[float, float]:
    """Seconds and peak MiB of the child that prepares."""
    preset = (
        f"model: {{name_or_path: {REPOSITORY / 'presets' / 'demo' / 'model'}}}\n"
        f"dataset: {{name_or_path: {data}, val_size: 0.1, train_on: response, max_length: 256}}\n"
    )
    begin = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "llmtui.core.worker.preparing"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, env={**os.environ, "LLMTUI_HOME": str(home)},
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.write(preset.encode())
    child.stdin.close()
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def main() -> str:
    """The table."""
    rows, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for count in ROWS:
            data = Path(folder) / f"rows-{count}.jsonl"
            write_rows(data, count)
            cold, peak = prepare(data, Path(folder) / "home")
            again, _ = prepare(data, Path(folder) / "home")
            peaks.append(peak)
            megabytes = f"{data.stat().st_size / 1e6:.0f} MB"
            rows.append([f"{count:,}", megabytes, f"{cold:.1f} s", f"{again:.2f} s", f"{peak:.0f} MiB",
                         f"{peak / peaks[0]:.2f}"])  # fmt: skip
    heading = "## Preparing data (`llmtui data`, a child that starts anew)\n\n"
    return heading + table(["rows", "file", "cold", "again", "peak memory", "of 15 000's"], rows)


if __name__ == "__main__":
    print(main())
