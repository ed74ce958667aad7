"""`evaluate`: base beside tuned, the same numbers as the run's own evaluations; what is missing is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.worker import evaluating
from tests.core.worker.small import make_data, make_model, new_run, of, preset_text, work

LORA = "{r: 4, lora_alpha: 8, target_modules: all-linear}"


def held_out(text: str, path: Path) -> str:
    """A preset whose validation rows are a file."""
    return text.replace("  val_size: 4", f"  val: {path}")


def evaluate(directory: RunDirectory, data: Path, monkeypatch: Any, capsys: Any, *step: int) -> tuple[int, Any]:
    """The child's exit code and its last line."""
    monkeypatch.setattr("sys.argv", ["evaluating", str(directory.path), str(data), *map(str, step)])
    code = evaluating.main()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert all("progress" in line for line in lines[:-1])
    return code, lines[-1]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that no run of this module trains on."""
    return make_data(tmp_path_factory.mktemp("other") / "test.jsonl", rows=10, seed=5)


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_an_adapter_is_scored_on_and_off(
    quantization: str, neox: Path, data: Path, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    text = held_out(preset_text(neox, data, lora=LORA, max_steps=4, eval_steps=2), other)
    directory = new_run(text.replace("dataset:", f"  quantization: {quantization}\ndataset:", 1))
    assert work(directory) == 0
    capsys.readouterr()
    last = of(directory, ev.Eval)[-1]
    code, answer = evaluate(directory, other, monkeypatch, capsys)
    assert code == 0
    assert answer["tuned"]["loss"] == pytest.approx(last.loss, abs=1e-5)
    assert answer["tuned"]["accuracy"] == pytest.approx(last.accuracy, abs=1e-3)
    assert answer["base"]["loss"] > answer["tuned"]["loss"]
    assert (answer["rows"], answer["trained_tokens"]) == (10, last.tokens + 10), "the first token is not predicted"
    assert (answer["tuned"]["exact_match"], answer["scored"]) == (None, "adapter")


def test_a_checkpoint_is_scored_by_its_step(
    llama: Path, data: Path, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    text = held_out(preset_text(llama, data, lora=LORA, more="checkpoints: {save_steps: 2}", max_steps=4, eval_steps=2),
                    other)  # fmt: skip
    directory = new_run(text)
    assert work(directory) == 0
    capsys.readouterr()
    first = of(directory, ev.Eval)[0]
    code, answer = evaluate(directory, other, monkeypatch, capsys, 2)
    assert (code, answer["scored"], answer["step"]) == (0, "checkpoint-2", 2)
    assert answer["tuned"]["loss"] == pytest.approx(first.loss, abs=1e-5)
    code, answer = evaluate(directory, other, monkeypatch, capsys, 3)
    assert (code, answer["error"]["kind"]) == (2, "usage")
    shutil.rmtree(directory.adapter)
    code, answer = evaluate(directory, other, monkeypatch, capsys)
    assert (code, answer["scored"]) == (0, "checkpoint-4")
    assert any("no result yet" in note for note in answer["notes"])


def test_a_whole_model_is_scored_beside_its_base_while_that_is_there(
    tmp_path: Path, data: Path, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model = make_model(tmp_path / "base", "llama", seed=3)
    directory = new_run(held_out(preset_text(model, data, max_steps=4, eval_steps=2), other))
    assert work(directory) == 0
    capsys.readouterr()
    last = of(directory, ev.Eval)[-1]
    code, answer = evaluate(directory, other, monkeypatch, capsys)
    assert code == 0
    assert answer["tuned"]["loss"] == pytest.approx(last.loss, abs=1e-5)
    assert answer["base"]["loss"] > answer["tuned"]["loss"]
    tuned = answer["tuned"]
    shutil.rmtree(model)
    code, answer = evaluate(directory, other, monkeypatch, capsys)
    assert (code, answer["base"], answer["tuned"]) == (0, None, tuned)
    assert any("the base is not scored: there is no folder" in note for note in answer["notes"])


def test_nothing_of_a_file_is_left_out(
    llama: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    text = preset_text(llama, data, max_steps=1, eval_steps=1)
    clean = "val_size: 4\n  limit: 20\n  shuffle: true\n  clean: {lower: true, duplicates: true, min_length: 20}"
    directory = new_run(text.replace("val_size: 4", clean))
    assert work(directory) == 0
    capsys.readouterr()
    rows = tmp_path / "test.jsonl"
    rows.write_text('{"instruction": "CAT", "output": "Dog"}\n' * 25)
    code, answer = evaluate(directory, rows, monkeypatch, capsys)
    assert (code, answer["rows"], answer["dropped"]) == (0, 25, {})
    assert "clean.lower changed 25 rows" in answer["notes"]


def test_what_is_wrong_with_run_or_data_is_said_before_a_model_loads(
    llama: Path, data: Path, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    directory = new_run(preset_text(llama, data))
    code, answer = evaluate(directory, other, monkeypatch, capsys)
    assert (code, answer["error"]["kind"]) == (2, "usage")
    assert "no result and no checkpoint yet" in answer["error"]["message"]
    directory = new_run(preset_text(llama, data, max_steps=1))
    assert work(directory) == 0
    capsys.readouterr()
    bad = other.parent / "bad.jsonl"
    bad.write_text('{"a": 1}\n')
    code, answer = evaluate(directory, bad, monkeypatch, capsys)
    assert (code, answer["error"]["kind"]) == (2, "data")
    assert "columns found: a" in answer["error"]["message"]
