"""The worker as the supervisor starts it: `python -m llmtui.core.worker RUN ATTEMPT`, a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmtui.core.runs import events as ev
from llmtui.core.runs.clock import boot_id
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.locks import is_held, take
from tests.core.worker.hub import hub
from tests.core.worker.small import attempt, error_of, events, new_run, of, preset_text, wait_for, work

LORA = "{r: 4, lora_alpha: 8, target_modules: [q_proj, v_proj]}"


def start(directory: RunDirectory, home: Path, **environment: str) -> subprocess.Popen[bytes]:
    number = attempt(directory)
    settings = os.environ | {"HF_HOME": str(home / "hf"), "HF_TOKEN": "hf_CANARYCANARYCANARY", **environment}
    with directory.output.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "llmtui.core.worker", str(directory.path), str(number)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=settings,
        )  # fmt: skip


def test_a_hub_model_is_downloaded_trained_and_named_by_its_id(llama: Path, data: Path, llmtui_home: Path) -> None:
    directory = new_run(preset_text("someone/tiny", data, lora=LORA))
    with hub(llama, "someone/tiny") as endpoint:
        process = start(directory, llmtui_home, HF_ENDPOINT=endpoint)
        wait_for(lambda: is_held(directory.worker_lock), "the worker's lock")
        assert process.wait(120) == 0, directory.output.read_text()
    assert not is_held(directory.worker_lock)
    first, last = events(directory)[0], events(directory)[-1]
    assert first == ev.WorkerStart(n=0, t=first.t, m=first.m, boot_id=boot_id(), attempt=1, pid=process.pid)
    assert isinstance(last, ev.Exit)
    downloads = [e for e in of(directory, ev.PhaseEvent) if e.name == "downloading"]
    wanted = sum((llama / name).stat().st_size for name in ("model.safetensors", "tokenizer.json", "config.json"))
    assert downloads[-1].done >= wanted
    phases = list(dict.fromkeys(e.name for e in of(directory, ev.PhaseEvent)))
    assert phases == ["loading_model", "downloading", "loading_dataset", "tokenizing", "training", "evaluating",
                      "saving", "finalizing"]  # fmt: skip
    settings = json.loads((directory.adapter / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "someone/tiny"
    output = directory.output.read_text()
    assert "step 6 · epoch 1.20 · loss" in output
    assert len(output.splitlines()) < 16, output
    for said in (
        "plan · 6 steps",
        "eval at step 3 · loss",
        "checkpoints/checkpoint-6 · ",
        "result · adapter/",
        "finished",
    ):
        assert said in output
    for path in directory.path.rglob("*"):
        assert not path.is_file() or b"hf_CANARY" not in path.read_bytes(), path

    # Downloaded once, it needs no network.
    again = new_run(preset_text("someone/tiny", data, lora=LORA, max_steps=1), "again")
    assert start(again, llmtui_home, HF_ENDPOINT="http://127.0.0.1:9").wait(120) == 0, again.output.read_text()


@pytest.mark.parametrize(
    ("name", "gated", "code", "message"),
    [
        ("someone/tiny", True, 3, "access to someone/tiny is gated"),
        ("someone/else", False, 2, "there is no folder and no hub model someone/else"),
    ],
)
def test_a_hub_that_refuses_is_one_sentence(
    name: str, gated: bool, code: int, message: str, llama: Path, data: Path, monkeypatch, capfd
) -> None:
    directory = new_run(preset_text(name, data))
    with hub(llama, "someone/tiny", gated) as endpoint:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
        assert work(directory) == code
    assert message in error_of(directory).message
    assert "Traceback" in capfd.readouterr().err
    assert of(directory, ev.Exit)[0].outcome == "failed"


def test_a_worker_whose_run_is_taken_leaves_at_once(llama: Path, data: Path, llmtui_home: Path) -> None:
    directory = new_run(preset_text(llama, data))
    with take(directory.worker_lock):
        assert start(directory, llmtui_home).wait(60) == 5
    assert events(directory) == []
