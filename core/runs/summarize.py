"""Writes a run's summary files: `python -m llmtui.core.runs.summarize RUN_DIRECTORY`. The only reader of matplotlib."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from llmtui.core.files import write_atomically
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.facts import as_json, read_summary
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.runs.state import Liveness, RunState
from llmtui.core.runs.summary_markdown import summary_markdown
from llmtui.core.runs.summary_page import summary_page

_MOST_POINTS = 4000


def loss_picture(state: RunState) -> str:
    """The loss by step as SVG: raw faint, smoothed over it, evaluations as points; no step's extreme is left out."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4))
    steps, losses = _thinned(state)
    axes.plot(steps, losses, color="#0072b2", alpha=0.35, linewidth=0.8, label="loss")
    axes.plot(steps, _smoothed(losses), color="#0072b2", linewidth=1.6, label="loss, EMA 0.9")
    evals = [(e.step, e.loss) for e in state.evals if e.loss is not None]
    if evals:
        axes.plot(*zip(*evals, strict=True), "o-", color="#d55e00", markersize=4, linewidth=1, label="eval loss")
    axes.set_xlabel("step")
    axes.set_ylabel("loss per trained token")
    axes.grid(alpha=0.25)
    axes.legend()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    return buffer.getvalue()


def _thinned(state: RunState) -> tuple[list[int], list[float]]:
    """Of long curves the minimum and maximum of each stretch."""
    curve = state.curve
    steps, losses = list(curve.step[: curve.length]), list(curve.loss[: curve.length])
    width = math.ceil(len(steps) / (_MOST_POINTS / 2))
    if width <= 1:
        return steps, losses
    kept: set[int] = set()
    for begin in range(0, len(steps), width):
        stretch = [i for i in range(begin, min(begin + width, len(steps))) if math.isfinite(losses[i])]
        if stretch:
            kept |= {min(stretch, key=losses.__getitem__), max(stretch, key=losses.__getitem__)}
    order = sorted(kept)
    return [steps[i] for i in order], [losses[i] for i in order]


def _smoothed(values: list[float], weight: float = 0.9) -> list[float]:
    """Bias-corrected exponential moving average; what is not finite is passed over."""
    result, mean, norm = [], 0.0, 0.0
    for value in values:
        if math.isfinite(value):
            mean, norm = weight * mean + (1 - weight) * value, weight * norm + (1 - weight)
        result.append(mean / norm if norm else math.nan)
    return result


def write_summary(directory: RunDirectory) -> None:
    """Write `summary.json`, `summary.md`, `summary.html` and `loss.svg`, each whole."""
    # Asked for by the supervisor as its last act: for the reader of the files nothing of the run lives any more.
    state = replace(read_state(directory), liveness=Liveness(supervisor=False, worker=False))
    facts = read_summary(directory, state)
    markdown = summary_markdown(facts)
    picture = loss_picture(state)
    encoded = msgspec.json.format(msgspec.json.encode(as_json(facts)), indent=1).decode()
    write_atomically(directory.summary_json, scrub(encoded).encode())
    write_atomically(directory.path / "summary.md", markdown.encode())
    write_atomically(directory.path / "loss.svg", picture.encode())
    write_atomically(directory.path / "summary.html", summary_page(facts, markdown, picture).encode())


if __name__ == "__main__":
    write_summary(RunDirectory(Path(sys.argv[1])))
