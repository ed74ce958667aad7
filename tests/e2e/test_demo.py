"""The demo is the main job: it learns in minutes, answers, and its result is continued from."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.state import RunState
from tests.e2e.product import llmtui, llmtui_json, start, wait_until_final

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]

DATA = Path(__file__).parents[2] / "presets" / "demo" / "data"


def answered(state: RunState, questions: Path) -> int:
    """How many of the held-out questions the last answers contain the expected word for."""
    expected = {q["prompt"]: q["expected"] for q in map(json.loads, questions.read_text("utf-8").splitlines())}
    last = {s.prompt: s.text for s in state.samples if s.step == state.step}
    assert len(last) >= 10
    hits = 0
    for prompt, text in last.items():
        words = expected[prompt]
        hits += any(word.lower() in text.lower() for word in ([words] if isinstance(words, str) else words))
    return hits


def test_the_demo_learns_and_answers_and_lora_on_int8_continues_from_it() -> None:
    begin = time.monotonic()
    llmtui("run", "demo", limit=600)
    seconds = time.monotonic() - begin
    (row,) = llmtui_json("ls")
    demo = RunDirectory(Path(llmtui_json("show", row["id"])["directory"]))
    state = read_state(demo)
    losses = state.curve.loss
    assert state.state == "finished"
    assert losses[state.curve.length - 1] < losses[0] / 3
    assert answered(state, DATA / "questions.jsonl") >= 8
    assert seconds < 180 * 1.5, "3 minutes on two idle cores; half as much again for a loaded machine"

    more = start("demo-lora-int8")
    state = wait_until_final(more, 600)
    assert state.state == "finished", (state.cause, state.error)
    assert state.plan is not None
    assert state.plan.quantization == "int8"
    assert state.plan.trainable_parameters < state.plan.total_parameters / 5
    assert state.curve.loss[state.curve.length - 1] < state.curve.loss[0] / 2
    assert (more.adapter / "adapter_model.safetensors").is_file()

    out = more.path.parent.parent / "merged"
    llmtui("merge", more.id, "-o", str(out), limit=300)
    assert (out / "model.safetensors").is_file()
