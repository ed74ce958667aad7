"""The published recipe on a stand-in of its data: the same rows, batches, steps and split as the article's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmtui.core.runs.reader import read_state
from tests.e2e.product import llmtui, start, wait_for, wait_until_final

pytestmark = pytest.mark.slow

ROWS, VAL_ROWS, TRAIN_ROWS = 15_015, 2_000, 13_015
BATCHES, STEPS = 1_627, 4_881


@pytest.fixture
def dolly(tmp_path: Path) -> Path:
    """15 015 rows in the shape of databricks-dolly-15k-ja, every third with an input."""
    path = tmp_path / "dolly.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(ROWS):
            row = {
                "instruction": f"番号{n}の意味を説明してください。",
                "input": f"資料{n}によれば、それは{n % 97}番目です。" if n % 3 == 0 else "",
                "output": f"それは{n}です。",
                "category": "closed_qa" if n % 3 == 0 else "open_qa",
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def test_the_published_recipe_plans_the_published_steps(dolly: Path) -> None:
    model = Path(__file__).parents[2] / "presets" / "demo" / "model"
    directory = start("opencalm-7b-dolly-ja", f"model.name_or_path={model}", f"dataset.name_or_path={dolly}")
    plan = wait_for(lambda: read_state(directory).plan, "the plan", 180)
    assert (plan.train_rows, plan.val_rows) == (TRAIN_ROWS, VAL_ROWS)
    assert plan.steps_per_epoch == BATCHES
    assert plan.total_steps == STEPS
    assert (plan.effective_batch, plan.quantization) == (8, "int8")
    assert plan.dropped == {}
    llmtui("stop", directory.id, "--now")
    assert wait_until_final(directory).state == "stopped"
