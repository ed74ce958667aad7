"""Labelled data through the commands alone: a run that says its exact match, and the result scored on a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmtui.tui.commands.output import plain
from tests.core.worker.small import make_model, preset_text
from tests.tui.commands.command import llmtui

pytestmark = pytest.mark.timeout(300)
DATASET = """\
template: text
  train_on: response
  label: {column: kind, names: {a: animal, t: "thing\\e[31m"}}
  clean: {lower: true}"""


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    """A preset, rows and a model; one label's name is hostile."""
    words = ("red", "blue", "green", "big", "small", "the")
    rows = [
        {"text": f"{what} {first} {second}", "kind": what[0]}
        for what in ("animal", "tree")
        for first in words
        for second in words
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "odd.jsonl").write_text('{"text": "x", "kind": "q"}\n{"text": "x", "kind": ""}\n')
    text = preset_text(make_model(tmp_path / "model"), "rows.jsonl", max_steps=24, eval_steps=12)
    path = tmp_path / "labels.yaml"
    path.write_text(text.replace("template: rinna", DATASET).replace("val_size: 4", "val_size: 12"))
    return path


def test_labels_from_the_run_to_its_scores(preset: Path) -> None:
    run = llmtui("run", str(preset), "--name", "labels")
    assert run.code == 0, run
    red = plain("thing\x1b[31m")
    said = [line for line in run.out.splitlines() if line.startswith("  eval at step")]
    assert len(said) == 2
    assert all("exact match" in line and "animal " in line and f"{red} " in line for line in said)
    assert "exact match" in llmtui("show", "labels").out
    summary = llmtui("export", "labels").out
    assert "| label | exact match | rows |" in summary
    row = llmtui("ls", "--json").json[0]

    done = llmtui("evaluate", "labels", "--data", "rows.jsonl", folder=preset.parent)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[1].split() == ["base", "tuned"]
    assert [line.split("  ")[0] for line in lines[2:6]] == ["loss", "perplexity", "token accuracy", "exact match"]
    assert "\x1b" not in done.out
    assert "tuned: labels" in done.err

    scored = llmtui("evaluate", "labels", "--data", str(preset.parent / "rows.jsonl"), "--json").json
    assert (scored["rows"], scored["scored"]) == (72, "model")
    assert scored["base"]["exact_match"] == 0.0
    assert {name: score["rows"] for name, score in scored["tuned"]["by_label"].items()} == {
        "animal": 36, "thing\x1b[31m": 36,
    }  # fmt: skip
    assert scored["tuned"]["exact_match"] > 0 < row["eval_exact_match"], "it has learned labels"

    wrong = llmtui("evaluate", "labels", "--data", str(preset.parent / "odd.jsonl"), "--json")
    assert wrong.code == 2
    assert wrong.json["error"]["kind"] == "data"
    assert "odd.jsonl:1" in wrong.json["error"]["message"] and "odd.jsonl:2" in wrong.json["error"]["message"]
    missing = llmtui("evaluate", "labels", "--data", "nowhere.jsonl")
    assert missing.code == 2
    assert "nowhere.jsonl: there is no such file" in missing.err
