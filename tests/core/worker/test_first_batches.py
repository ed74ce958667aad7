"""What is fed is what `llmtui data` says will be fed, for every template, mask and way with long rows."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from llmtui.core.data.fed import BatchHash, first_batches
from llmtui.core.data.prepare import open_prepared
from llmtui.core.preset import LoadedPreset, parse_preset, resolve, resolved_preset
from llmtui.core.runs import events as ev
from llmtui.core.worker.preparing import prepared_folder
from tests.core.worker.small import attempt, make_model, new_run, of, preset_text, work

OWN = "Q: {{ instruction }}\nA: {{ output }}"
TEMPLATES = ("alpaca", "rinna", "chat:chatml", "text", "own.jinja")
CASES = list(product(TEMPLATES, ("everything", "response"), ("cut", "drop", "split")))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_model(tmp_path_factory.mktemp("world") / "tiny")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 512}))
    return folder


def rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    made = [
        {"instruction": f"who sees {'the big ' * (n % 5)}cat?", "output": "the dog " * (1 + n % 9)} for n in range(30)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return path


def preset_of(model: Path, folder: Path, *dataset: str, **training: object) -> LoadedPreset:
    (folder / "own.jinja").write_text(OWN)
    return parse_preset(preset_text(model, rows(folder), **training), folder / "p.yaml", dataset)


def looked_at(loaded: LoadedPreset) -> BatchHash:
    """As the child of `llmtui data` does it."""
    folder = prepared_folder(resolved_preset(loaded), lambda *_: None)
    return first_batches(open_prepared(folder), loaded.preset)


def fed(loaded: LoadedPreset) -> ev.FirstBatches:
    directory = new_run(resolve(loaded))
    assert work(directory) == 0
    (event,) = of(directory, ev.FirstBatches)
    return event


@pytest.mark.parametrize(("template", "train_on", "on_long"), CASES, ids=lambda value: value)
def test_the_worker_feeds_what_was_looked_at(
    model: Path, tmp_path: Path, template: str, train_on: str, on_long: str
) -> None:
    name = str(tmp_path / template) if template.endswith(".jinja") else template
    longest = {"alpaca": 260, "rinna": 110, "chat:chatml": 78}.get(template, 40)
    settings = {"template": name, "train_on": train_on, "on_long": on_long, "max_length": longest}
    loaded = preset_of(model, tmp_path, *(f"dataset.{key}={value}" for key, value in settings.items()), max_steps=3)
    said = looked_at(loaded)
    event = fed(loaded)
    assert (event.batches, event.hash) == (said.batches, said.hexdigest())


@pytest.mark.parametrize(
    "training",
    [
        {"max_steps": 14, "gradient_accumulation_steps": 2},
        {"max_steps": 9, "train_sampling_strategy": "group_by_length", "gradient_accumulation_steps": 3},
        {"max_steps": 5, "train_sampling_strategy": "sequential", "seed": 7},
        {"max_steps": 120, "per_device_train_batch_size": 1},
    ],
    ids=["accumulated over two epochs", "grouped", "in order", "more than a hundred"],
)
def test_every_order_of_rows(model: Path, tmp_path: Path, training: dict[str, object]) -> None:
    loaded = preset_of(model, tmp_path, "dataset.max_length=90", "dataset.padding=max_length", **training)
    said = looked_at(loaded)
    event = fed(loaded)
    assert (event.batches, event.hash) == (said.batches, said.hexdigest())


def test_a_resumed_attempt_says_nothing_of_first_batches(model: Path, tmp_path: Path) -> None:
    directory = new_run(resolve(preset_of(model, tmp_path, max_steps=4)))
    assert work(directory) == 0
    assert len(of(directory, ev.FirstBatches)) == 1
    assert attempt(directory) > 1
