"""`python -m bench`: what a CPU can show, as ratios to bare scripts; the table goes to `bench/results/cpu.md`."""

from __future__ import annotations

import sys

from bench import data_rows, overhead, reading, startup, watching
from bench.measure import RESULTS, machine_line

PARTS = {"startup": startup.main, "reading": reading.main, "watching": watching.main, "overhead": overhead.main,
         "data": data_rows.main}  # fmt: skip


def main() -> None:
    """Run all parts, or those named on the command line."""
    wanted = sys.argv[1:] or list(PARTS)
    tables = []
    for name in wanted:
        tables.append(PARTS[name]())
        print(tables[-1], flush=True)
    if not sys.argv[1:]:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "cpu.md").write_text(f"# {machine_line()}\n\n" + "\n\n".join(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
