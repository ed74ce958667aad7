"""How the editor looks, at 80×24 and large."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from textual.pilot import Pilot

import llmtui.core.forecast as core_forecast
from llmtui.core.preset import parse_preset
from tests.tui.editor.small_app import SmallApp, app_on, burst, until

SIZES: Final = pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
TEXT: Final = """\
description: 学習テスト① [red]x[/] 👨‍👩‍👧 ｶﾅ, a line that is too long to be shown whole in eighty columns
model:
  name_or_path: cyberagent/open-calm-7b
  quantization: int8
dataset:
  name_or_path: /データ/[/usr/bin/x]/rows.jsonl
  val_size: 2000
lora:
  r: 8
  target_modules: [query_key_value]
training:
  learning_rate: 3e-4
  eval_steps: 200
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallApp:
    """An editor whose forecast is always the same."""
    fixed = core_forecast.Forecast(
        source="known", parts=(core_forecast.Part("weights", 8 << 30),), process=12 << 30, checkpoint_bytes=48 << 20,
        disk_bytes=192 << 20, effective_batch=8, rows=13_015, steps_per_epoch=1_627, total_steps=4_881,
    )  # fmt: skip
    monkeypatch.setattr(core_forecast, "forecast", lambda preset, folder: fixed)
    return app_on(TEXT, tmp_path / "夜-[red]①.yaml")


@SIZES
def test_opened(app: SmallApp, size: tuple[int, int], snap_compare: Any) -> None:
    async def forecast(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.editor._made is not None)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=forecast)


@SIZES
def test_typing_a_wrong_value(app: SmallApp, size: tuple[int, int], snap_compare: Any) -> None:
    async def typing(pilot: Pilot[None]) -> None:
        burst(app, "slash", "=lora.r", "enter", "enter", "ctrl+u", "=-4")
        await until(pilot, lambda: app.editor._trial is not None)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=typing)


@SIZES
def test_changed_with_problems(app: SmallApp, size: tuple[int, int], snap_compare: Any) -> None:
    async def change(pilot: Pilot[None]) -> None:
        burst(app, "slash", "=lora", "enter", "space")
        burst(app, "slash", "=training.seed", "enter", "enter", "ctrl+u", "=7", "enter")
        burst(app, "slash", "=training.eval_steps", "enter", "enter", "ctrl+u", "=often", "enter")
        await until(pilot, lambda: app.editor.document.problem_of("training.eval_steps"))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=change)


@SIZES
def test_the_difference(app: SmallApp, size: tuple[int, int], snap_compare: Any) -> None:
    async def change(pilot: Pilot[None]) -> None:
        burst(app, "slash", "=lora.r", "enter", "enter", "ctrl+u", "=16", "enter")
        preset = parse_preset(TEXT.replace("r: 8", "r: 16"), app.editor.document.path).preset
        await until(pilot, lambda: app.editor._made_of == preset)
        burst(app, "d")
        await until(pilot, lambda: app.screen is not app.editor)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=change)
