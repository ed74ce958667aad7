"""The forecast beside the form follows what is typed, and never holds it up or ends it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

import pytest

import llmtui.core.forecast as core_forecast
from tests.tui.editor.small_app import app_on, burst, until
from tests.tui.editor.test_editing import help_text, summary_text

ROWS: Final = '{"instruction": "a", "output": "b"}\n' * 100
TEXT: Final = """\
model: {name_or_path: cyberagent/open-calm-7b, quantization: int8}
dataset: {name_or_path: rows.jsonl, val_size: 20}
lora: {r: 8}
training: {num_train_epochs: 2, warmup_steps: 0.1}
gpu_split: {gpus: none}
"""


async def test_steps_and_memory_follow_what_is_typed(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(ROWS)
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: "steps 20, 10 an epoch (80 rows)" in summary_text(app))
        burst(app, "slash", "=per_device_train", "enter", "enter", "ctrl+u", "=4")
        await until(pilot, lambda: "steps 40, 20 an epoch (80 rows)" in summary_text(app))
        assert "effective batch 4 = 4 per device × 1 accumulated × 1 rank; 40 steps" in help_text(app)
        burst(app, "escape", "slash", "=warmup", "enter")
        await until(pilot, lambda: "10 % of the steps are warm-up: 2 of 20" in help_text(app))


async def test_unknown_stays_unknown(tmp_path: Path) -> None:
    app = app_on(TEXT.replace("cyberagent/open-calm-7b", "someone/unknown"), tmp_path / "mine.yaml")
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: "shape is not known" in summary_text(app))
        burst(app, "slash", "=eval_steps", "enter")
        await pilot.pause()
        assert "evaluations in" not in help_text(app), "steps are not known without the data"


async def test_a_forecast_that_fails_is_said_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("[/broken] config")

    monkeypatch.setattr(core_forecast, "forecast", broken)
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "[/broken] config" in summary_text(app))
        burst(app, "slash", "=seed", "enter", "enter", "ctrl+u", "=7", "enter")
        await until(pilot, lambda: app.editor.document.text_of("training.seed") == "7")


async def test_keys_are_answered_while_a_forecast_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    real = core_forecast.forecast

    def slow(preset: Any, folder: Path) -> Any:
        begun.set()
        go.wait(20)
        return real(preset, folder, [])

    monkeypatch.setattr(core_forecast, "forecast", slow)
    app = app_on(TEXT, tmp_path / "mine.yaml")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, begun.is_set)
        burst(app, "slash", "=seed", "enter", "enter", "ctrl+u", "=7", "enter")
        await until(pilot, lambda: app.editor.document.text_of("training.seed") == "7")
        assert not go.is_set()
        go.set()
        await until(pilot, lambda: "memory" in summary_text(app))
