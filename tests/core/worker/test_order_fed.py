"""The order of rows worked out without torch is the one that the worker's Trainer feeds, epoch by epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from llmtui.core.data.order import Strategy, batches, epoch_order
from llmtui.core.runs import events as ev
from llmtui.core.worker.feeding import CountingCollator
from tests.core.worker.small import new_run, of, preset_text, work


@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("strategy", ["random", "sequential", "group_by_length"])
def test_batches_come_in_the_order_that_is_worked_out(
    llama: Path, data: Path, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, accumulation: int
) -> None:
    fed: list[list[list[int]]] = []
    real = CountingCollator.__call__

    def noting(self: CountingCollator, features: Any) -> Any:
        fed.append([feature["input_ids"] for feature in features])
        return real(self, features)

    monkeypatch.setattr(CountingCollator, "__call__", noting)
    text = preset_text(
        llama, data, max_steps=None, num_train_epochs=3, per_device_train_batch_size=3, eval_steps=None, seed=11,
        gradient_accumulation_steps=accumulation, train_sampling_strategy=strategy,
    )  # fmt: skip
    directory = new_run(text, name=f"{strategy}-{accumulation}")
    rows = rows_of(directory, monkeypatch)
    assert work(directory) == 0, of(directory, ev.ErrorEvent)
    lengths: Any = numpy.array([len(ids) for ids in rows[0]])
    wanted = []
    for epoch in range(3):
        order = epoch_order(lengths, strategy, batch=3, accumulation=accumulation, seed=11, epoch=epoch)
        wanted += [[rows[0][row] for row in batch] for batch in batches(order, 3)]
    assert fed == wanted


def rows_of(directory: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[list[int]]]:
    """The training rows of a run that is about to start, there once it has been loaded."""
    from llmtui.core.worker.loading import load as real

    kept: list[list[list[int]]] = []

    def keeping(*arguments: Any) -> Any:
        loaded = real(*arguments)
        kept.append([loaded.data.train[row]["input_ids"] for row in range(len(loaded.data.train))])
        return loaded

    monkeypatch.setattr("llmtui.core.worker.finetune.load", keeping)
    return kept
