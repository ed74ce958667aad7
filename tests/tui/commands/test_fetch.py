"""`llmtui fetch`: everything is brought here once; a second time, and without a network, it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.worker.hub import hub
from tests.core.worker.small import make_data, make_model
from tests.tui.commands.command import llmtui

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    make_data(tmp_path / "rows.jsonl")
    path = tmp_path / "my.yaml"
    path.write_text("model: {name_or_path: someone/tiny}\ndataset: {name_or_path: rows.jsonl, template: rinna, "
                    "max_length: 120, val_size: 4}\ngpu_split: {gpus: none}\n")  # fmt: skip
    return path


def test_a_hub_model_and_its_rows_are_here_afterwards(
    preset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(tmp_path / "tiny")
    with hub(model, "someone/tiny") as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        shown = llmtui("data", str(preset), "--json")
        snapshot = next((tmp_path / "hf" / "hub").glob("models--someone--tiny/snapshots/*"))
        assert shown.code == 0 and not list(snapshot.glob("*.safetensors")), "the data needs no weights"
        done = llmtui("fetch", str(preset), "--json")
    assert done.code == 0, done
    assert Path(done.json["model"]["path"]) == snapshot and list(snapshot.glob("*.safetensors"))
    weights = (model / "model.safetensors").stat().st_size
    assert weights < done.json["model"]["bytes"] < weights + 200_000
    assert (done.json["data"]["train_rows"], done.json["data"]["val_rows"]) == (20, 4)

    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    again = llmtui("fetch", str(preset))
    assert again.code == 0 and "all is here: llmtui run my" in again.out, again


def test_what_a_hub_refuses_is_one_sentence(preset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(tmp_path, "someone/tiny", gated=True) as endpoint:
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        done = llmtui("fetch", str(preset), "--json")
    assert done.code == 3 and "gated" in done.json["error"]["message"], done
