"""What only a card can show: speed beside a bare Trainer, memory beside NVML, and stop and resume in each precision.

`python -m bench.gpu train` compares the worker with `bench.bare_trainer` on the published shape, interleaved.
`python -m bench.gpu life` trains, stops and resumes int8, nf4 and bf16, and reads the card independently.
Results go to `$OUT` (or `bench/results`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bench.gpu_setup import FOLDER, make_model, make_rows, token_rows
from bench.measure import RESULTS, table
from llmtui.core.preset import load_preset
from llmtui.core.process.launch import resume_run, start_run
from llmtui.core.process.stop import stop, wait_until_ended
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState

OUT = Path(os.environ.get("OUT", str(RESULTS)))
PYTHON = sys.executable
STEPS, WARM = 48, 12
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.05, "target_modules": ["query_key_value"]}
RECIPES: dict[str, dict[str, Any]] = {
    # name: what the preset is told, and what the bare script is told
    "published int8": {"sets": [], "bare": {"quantization": "int8", "kbit": True, "gradient_checkpointing": True}},
    "bf16": {
        "sets": ["model.quantization=none", "training.gradient_checkpointing=false"],
        "bare": {"quantization": "none", "kbit": False, "gradient_checkpointing": False},
    },
}


def _sets(extra: list[str], steps: int = STEPS) -> list[str]:
    return [
        f"model.name_or_path={make_model()}", f"dataset.name_or_path={FOLDER / 'rows.jsonl'}", "dataset.val_size=0",
        f"training.max_steps={steps}", f"checkpoints.save_steps={10 * steps}", "training.eval_steps=null",
        "training.sample_prompts=[]", *extra,
    ]  # fmt: skip


def _run(sets: list[str], name: str) -> RunDirectory:
    return start_run(load_preset("opencalm-7b-dolly-ja", sets), name=name)


def _wait(directory: RunDirectory, limit: float = 400.0) -> RunState:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        state = read_state(directory)
        if state.final and not state.alive:
            if state.state == "failed":
                print(state.cause, state.error, (directory.output.read_text()[-3000:]), flush=True)
            return state
        time.sleep(0.3)
    raise SystemExit(f"{directory.id} did not end")


def _own(name: str, sets: list[str]) -> dict[str, Any]:
    state = _wait(_run(_sets(sets), name.replace(" ", "-")))
    seconds = sum(state.curve.seconds[WARM : state.curve.length])
    peaks = state.memory_peaks[0] if state.memory_peaks else None
    return {
        "it_s": (state.curve.length - WARM) / seconds if seconds else 0.0,
        "tokens_s": sum(state.curve.tokens[WARM : state.curve.length]) / seconds if seconds else 0.0,
        "losses": list(state.curve.loss[:3]) + list(state.curve.loss[-3:]),
        "peak_allocated_mib": (peaks.peak_allocated or 0) >> 20 if peaks else None,
        "peak_reserved_mib": (peaks.peak_reserved or 0) >> 20 if peaks else None,
        "nvml_peak_mib": (state.hardware_peaks[0].used or 0) >> 20 if state.hardware_peaks else None,
    }


def _bare(recipe: dict[str, Any], rows: Path) -> dict[str, Any]:
    spec = {
        "model": str(make_model()), "rows": str(rows), "lora": LORA, "steps": STEPS, "warm": WARM, "batch": 8,
        "learning_rate": 3e-4, "seed": 42, "logging_steps": 20, "output": str(FOLDER / "bare"),
        "dtype": "bfloat16", "bf16": True, "fp16": False,
    } | recipe  # fmt: skip
    path = FOLDER / "spec.json"
    path.write_text(json.dumps(spec))
    done = subprocess.run([PYTHON, "-m", "bench.bare_trainer", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def train(blocks: int) -> None:
    """Bare and own in turn, for each recipe; the ratio of medians."""
    make_model()
    loaded = load_preset("opencalm-7b-dolly-ja", _sets([]))
    rows = FOLDER / "token-rows.json"
    rows.write_text(json.dumps(token_rows(loaded.preset, FOLDER)))
    results: list[dict[str, Any]] = []
    for name, recipe in RECIPES.items():
        for block in range(blocks):
            for who in ("bare", "own") if block % 2 == 0 else ("own", "bare"):
                result = _own(name, recipe["sets"]) if who == "own" else _bare(recipe["bare"], rows)
                results.append({"recipe": name, "who": who, **result})
                print(json.dumps(results[-1]), flush=True)
    _write("gpu-train", _train_table(results), results)


def _train_table(results: list[dict[str, Any]]) -> str:
    rows = []
    for name in RECIPES:
        best: dict[str, list[float]] = {"bare": [], "own": []}
        for result in results:
            if result["recipe"] == name:
                best[result["who"]].append(result["it_s"])
        bare, own = (sorted(best[w])[len(best[w]) // 2] for w in ("bare", "own"))
        rows.append(
            [name, *(f"{v:.3f}" for v in (bare, own)), f"{own / bare:.3f}", str(best["bare"]), str(best["own"])]
        )
    return table(["recipe", "bare it/s", "llmtui it/s", "ratio", "bare, all", "llmtui, all"], rows)


class CardReader(threading.Thread):
    """Reads the first card through NVML by itself, to be compared with what the run recorded."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, int]] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        while not self.stopped.wait(0.2):
            self.samples.append((time.time(), pynvml.nvmlDeviceGetMemoryInfo(handle).used))


def life(quantizations: list[str]) -> None:
    """int8, nf4 and bf16: train, stop in the middle, resume to the end; the curve and the card's memory."""
    rows: list[list[str]] = []
    raw: list[dict[str, Any]] = []
    for quantization in quantizations:
        extra = [f"model.quantization={quantization}", "training.gradient_checkpointing=true"]
        reader = CardReader()
        reader.start()
        whole = _wait(_run(_sets(extra, 30), f"whole-{quantization}"))
        reader.stopped.set()
        reader.join()
        broken = _run(_sets(extra, 30), f"broken-{quantization}")
        while read_state(broken).step < 12:
            time.sleep(0.1)
        stop(broken)
        stopped = wait_until_ended(broken, 120)
        resume_run(broken)
        resumed = _wait(broken)
        raw.append(_compare(quantization, whole, stopped, resumed, reader))
        print(json.dumps(raw[-1]), flush=True)
        rows.append([str(value) for value in raw[-1].values()])
    _write(f"gpu-life-{quantizations[0]}", table(list(raw[0]), rows), raw)


def _compare(
    quantization: str, whole: RunState, stopped: RunState, resumed: RunState, reader: CardReader
) -> dict[str, Any]:
    length = min(whole.curve.length, resumed.curve.length)
    gaps = [abs(whole.curve.loss[i] - resumed.curve.loss[i]) for i in range(length)]
    differences = []
    for sample in whole.hardware_history:
        near = min(reader.samples, key=lambda s: abs(s[0] - sample.t))
        used = sample.gpus[0].used if sample.gpus else None
        if used and abs(near[0] - sample.t) < 0.3:
            differences.append(abs(near[1] - used) / near[1])
    final = whole.gpu_final[0].used if whole.gpu_final else None
    return {
        "quantization": quantization, "dtype": whole.plan.dtype if whole.plan else "", "state": whole.state,
        "stopped at": stopped.step, "stop": stopped.state, "after resume": f"{resumed.state} at {resumed.step}",
        "largest loss gap": round(max(gaps), 5), "first losses": [round(x, 4) for x in whole.curve.loss[:2]],
        "samples compared": len(differences), "median VRAM gap to NVML": _median(differences),
        "peak allocated MiB": (whole.memory_peaks[0].peak_allocated or 0) >> 20 if whole.memory_peaks else None,
        "peak reserved MiB": (whole.memory_peaks[0].peak_reserved or 0) >> 20 if whole.memory_peaks else None,
        "card at end MiB": final >> 20 if final else None,
        "card peak, own reading MiB": max(s[1] for s in reader.samples) >> 20,
        "card peak, recorded MiB": (whole.hardware_peaks[0].used or 0) >> 20 if whole.hardware_peaks else None,
    }  # fmt: skip


def _median(values: list[float]) -> float | None:
    return round(sorted(values)[len(values) // 2], 5) if values else None


def _write(name: str, text: str, raw: Any) -> None:
    import torch
    import transformers

    card = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "CPU"
    head = f"{card}, torch {torch.__version__}, transformers {transformers.__version__}, {time.strftime('%Y-%m-%d')}"
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.md").write_text(f"{head}\n\n{text}\n")
    (OUT / f"{name}.json").write_text(json.dumps(raw, indent=1))
    print(f"{head}\n{text}", flush=True)


def main() -> None:
    os.environ.setdefault("LLMTUI_HOME", str(FOLDER / "home"))
    make_rows()
    for task in sys.argv[1:] or ["train", "life"]:
        if task.startswith("train"):
            train(int(task.partition("=")[2] or 2))
        elif task.startswith("life"):
            life((task.partition("=")[2] or "int8,nf4,none").split(","))
        else:
            raise SystemExit(f"unknown task {task}")


if __name__ == "__main__":
    main()
