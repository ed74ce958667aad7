"""What the worker's own work costs per step: time inside our callbacks, counted by the profiler in a real attempt."""

from __future__ import annotations

import os
import pstats
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import table
from llmtui.core.preset import load_preset, resolve
from llmtui.core.runs.attempt import AttemptInfo, write_attempt
from llmtui.core.runs.directory import create_run
from llmtui.core.runs.reader import read_state

_SETS = [
    "training.max_steps=60", "dataset.val_size=0", "training.eval_steps=null", "training.sample_prompts=[]",
    "checkpoints.save_steps=1000", "gpu_split.gpus=none",
]  # fmt: skip
_OURS = ("on_train_begin", "on_pre_optimizer_step", "on_step_end")


def main() -> str:
    """Markdown row: milliseconds per step in our callbacks, and their share."""
    loaded = load_preset("demo", _SETS)
    with tempfile.TemporaryDirectory() as folder:
        directory = create_run(Path(folder), resolve(loaded), name="overhead", preset_name="demo", task="finetune",
                               description="", command=[])  # fmt: skip
        write_attempt(directory, AttemptInfo(attempt=1, started=0.0))
        profile = Path(folder) / "profile"
        script = (
            "import cProfile, sys; profiler = cProfile.Profile()\n"
            "from llmtui.core.worker import __main__ as entry\n"
            "code = profiler.runcall(entry.main); profiler.dump_stats(sys.argv[3]); sys.exit(code)\n"
        )
        subprocess.run(
            [sys.executable, "-c", script, str(directory.path), "1", str(profile)], check=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        state = read_state(directory)
        stats = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
        own = sum(
            cumulative for (file, _, name), (_, _, _, cumulative, _) in stats.items()
            if name in _OURS and file.endswith("worker/trainer.py")
        )  # fmt: skip
    seconds = sum(state.curve.seconds[: state.curve.length])
    row = ["demo on the CPU", f"{1000 * seconds / state.step:.0f}", f"{1000 * own / state.step:.2f}",
           f"{100 * own / seconds:.2f} %", "≤ 0.5 %"]  # fmt: skip
    return table(["worker", "ms a step", "ms in our callbacks (profiled)", "share", "budget"], [row])


if __name__ == "__main__":
    print(main())
