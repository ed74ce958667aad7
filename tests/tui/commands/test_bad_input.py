"""Bad input: one clear sentence with its place and its cure, the exit code of the contract, and nothing created."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmtui.core.home import runs_folder
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from tests.core.runs.whole_run import make_run
from tests.tui.commands.command import Done, llmtui

FIVE = """\
model:
  name_or_path: x/y
  quantization: int9
dataset:
  name_or_path: rows.jsonl
lora:
  r: 0
training:
  learning_rate: fast
  evaluation_strategy: steps
  num_train_epochs: -1
"""


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    """A preset over a tiny model folder and a few rows, that could be run."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (tmp_path / "rows.jsonl").write_text('{"instruction": "a", "output": "b"}\n' * 20)
    path = tmp_path / "mine.yaml"
    path.write_text("model: {name_or_path: ./model}\ndataset: {name_or_path: rows.jsonl}\ngpu_split: {gpus: none}\n")
    return path


@pytest.fixture
def living() -> Iterator[RunDirectory]:
    """A run in the middle of training whose processes seem to live: its locks are held."""
    run = make_run(runs_folder())
    cut(run.events, 9)
    cut(run.monitor, 2)
    with locks.take(run.supervisor_lock), locks.take(run.worker_lock):
        yield run


def cut(path: Path, lines: int) -> None:
    """Keep the first lines of an event file."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))


def refused(done: Done, code: int, *words: str) -> None:
    """The exit code, every word in the sentence, no run created."""
    assert done.code == code, done
    for word in words:
        assert word in done.err, done.err
    assert done.out == ""


def no_run() -> bool:
    return not any(runs_folder().iterdir())


def test_five_mistakes_are_five_sentences_in_under_a_second(tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE)
    begin = time.monotonic()
    done = llmtui("run", str(path))
    seconds = time.monotonic() - begin
    refused(done, 2)
    lines = done.err.strip().splitlines()
    for line, key, cure in (
        (3, "model.quantization", "int8"), (7, "lora.r", "≥ 1"), (9, "training.learning_rate", "3e-4"),
        (10, "training.evaluation_strategy", "eval_steps"), (11, "training.num_train_epochs", "> 0"),
    ):  # fmt: skip
        (found,) = [text for text in lines if key in text]
        assert f"five.yaml:{line}:" in found and cure in found, found
    assert no_run()
    assert seconds < 3, "a second on an idle machine; this one may be busy"


def test_the_same_as_json(tmp_path: Path) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE)
    done = llmtui("run", str(path), "--json")
    assert done.code == 2
    error = done.json["error"]
    assert error["kind"] == "preset"
    assert [p["line"] for p in error["problems"]] == [3, 7, 9, 10, 11]
    assert all(p["cure"] and p["field"] and p["value"] for p in error["problems"])


@pytest.mark.parametrize(
    ("sets", "code", "words"),
    [
        (["dataset.name_or_path=gone.jsonl"], 2, ["gone.jsonl", "no such data file"]),
        (["dataset.name_or_path=empty.jsonl"], 2, ["empty.jsonl", "empty"]),
        (["dataset.name_or_path=strange.jsonl"], 2, ["strange.jsonl", "column"]),
        (["dataset.val_size=20"], 2, ["val_size 20", "none to train on"]),
        (["model.name_or_path=./modle"], 2, ["there is no folder", "did you mean", "model"]),
        (["model.name_or_path=./nothing.gguf"], 2, ["there is no file"]),
        (["model.name_or_path=./empty"], 2, ["holds no model", "config.json"]),
        (["model.name_or_path=run:nobody"], 5, ['no run "nobody"', "run it first"]),
        (["gpu_split.strategy=ddp"], 2, ["gpu_split.strategy", "cannot be run by this version yet"]),
        (["gpu_split.gpus=[97]"], 3, ["GPU 97", "not here"]),
        (["lora.rank=8"], 2, ["lora.rank", "unknown key", "r"]),
    ],
)  # fmt: skip
def test_a_run_that_cannot_work_is_refused(preset: Path, sets: list[str], code: int, words: list[str]) -> None:
    (preset.parent / "empty.jsonl").write_text("")
    (preset.parent / "strange.jsonl").write_text('{"q": 1}\n')
    (preset.parent / "empty").mkdir()
    arguments = [part for assignment in sets for part in ("--set", assignment)]
    refused(llmtui("run", str(preset), *arguments, folder=preset.parent), code, *words)
    assert no_run()


def test_a_preset_or_command_that_does_not_exist(tmp_path: Path) -> None:
    refused(llmtui("run", "opencalm"), 2, 'no preset "opencalm"', "opencalm-7b-dolly-ja")
    refused(llmtui("run", "./nope.yaml", folder=tmp_path), 2, "no preset file ./nope.yaml")
    refused(llmtui("shwo", "last"), 2, "shwo", "show")
    refused(llmtui("show"), 2, "RUN")
    refused(llmtui("run", "demo", "--nmae", "x"), 2, "--nmae", "--name")
    refused(llmtui("show", "last"), 2, "there is no run yet", "llmtui run demo")


def test_a_full_disk_is_said_before_anything_is_written(preset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmtui.core.errors import MachineError
    from llmtui.core.preset import load_preset
    from llmtui.core.process import launch

    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1 << 20))
    with pytest.raises(MachineError, match="1 MiB are free"):
        launch.start_run(load_preset(str(preset)))
    assert no_run()


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(llmtui("ls", env={"LLMTUI_HOME": str(tmp_path / "file" / "home")}), 3, "home folder", "LLMTUI_HOME")


def test_a_second_run_of_a_living_name_is_refused(preset: Path, living: RunDirectory) -> None:
    done = llmtui("run", str(preset), "--name", "night")
    refused(done, 5, 'a run named "night" is going on', living.id, "--name")
    assert [p.name for p in runs_folder().iterdir()] == [living.id]


@pytest.mark.parametrize("name", ["", "a/b", "../up", "x@5", "...", "\n"])
def test_a_name_that_is_no_name(preset: Path, name: str) -> None:
    refused(llmtui("run", str(preset), "--name", name), 2, "--name")
    assert no_run()


def test_a_living_run_is_not_deleted_and_not_resumed(living: RunDirectory) -> None:
    refused(llmtui("rm", living.id, "--yes"), 5, "is going on", f"llmtui stop {living.id}")
    refused(llmtui("resume", living.id), 5, living.id)
    assert living.info_file.exists()


def test_an_ended_run_is_not_stopped(living: RunDirectory) -> None:
    other = make_run(runs_folder(), "20231115-000000-other")
    for command in ("stop", "checkpoint"):
        refused(llmtui(command, other.id), 5, "is not running", "llmtui ls")
    refused(llmtui("stop", other.id, "--now", "--kill"), 2, "exclude each other")


def test_what_is_ambiguous_is_not_destroyed() -> None:
    for stamp in ("20231114-000000", "20231115-000000"):
        make_run(runs_folder(), f"{stamp}-night")
    refused(llmtui("rm", "night", "--yes"), 5, '"night" means 2 runs', "20231115-000000-night")
    refused(llmtui("resume", "night"), 5, "means 2 runs")
    assert len(list(runs_folder().iterdir())) == 2
    done = llmtui("show", "night")
    assert done.code == 0 and "night is 20231115-000000-night" in done.err


def test_rm_asks_and_deletes_nothing_unasked() -> None:
    run = make_run(runs_folder())
    refused(llmtui("rm", run.id), 2, "--yes")
    refused(llmtui("rm", run.id, stdin="night\n"), 2, "terminal")
    for command in ("show", "stop", "wait", "logs", "export", "checkpoint"):
        refused(llmtui(command, f"{run.id}@4"), 2, "whole runs", f"write {run.id}")
    refused(llmtui("rm", f"{run.id}@4", "--yes"), 2, "whole runs")
    refused(llmtui("resume", f"{run.id}@4", "--from", "3"), 2, "two checkpoints")
    assert run.info_file.exists()
    done = llmtui("rm", run.id, "--yes", "--json")
    assert (done.code, done.json["id"]) == (0, run.id)
    assert not run.path.exists()


def test_a_damaged_run_is_listed_and_can_be_deleted() -> None:
    run = make_run(runs_folder())
    run.info_file.write_text("{")
    done = llmtui("ls")
    assert done.code == 0 and "damaged" in done.out and run.id in done.out
    assert llmtui("ls", "--json").json[0]["state"] == "damaged"
    refused(llmtui("show", run.id), 2, "run.json is missing or damaged")
    assert llmtui("rm", run.id, "--yes").code == 0


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b"", b"model: ["])
def test_a_run_whose_preset_is_damaged_is_refused(content: bytes | None) -> None:
    run = make_run(runs_folder())
    cut(run.events, 9)
    cut(run.monitor, 1)
    run.preset.unlink() if content is None else run.preset.write_bytes(content)
    for more in ([], ["--set", "training.max_steps=9"]):
        refused(llmtui("resume", run.id, "--detach", *more), 2 if not more else 5, "")
    assert llmtui("show", run.id).code == 0


def test_what_lies_among_the_runs_is_passed_over() -> None:
    run = make_run(runs_folder())
    (runs_folder() / ".DS_Store").write_bytes(b"\0")
    (runs_folder() / "gone").symlink_to("nowhere")
    (runs_folder() / "a folder").mkdir()
    (runs_folder() / "a folder" / "supervisor.lock").mkdir()
    assert [row["id"] for row in llmtui("ls", "--json").json] == [run.id]
    for command in (["show", "last"], ["status"], ["logs", "last"], ["export", run.id]):
        assert llmtui(*command).code == 0, command


def test_a_folder_where_a_file_should_be_is_one_sentence() -> None:
    run = make_run(runs_folder())
    run.output.unlink(missing_ok=True)
    run.output.mkdir()
    refused(llmtui("logs", run.id), 3, "output.log", "Is a directory")
    run.events.unlink()
    run.events.mkdir()
    done = llmtui("show", run.id, "--json")
    assert (done.code, done.json["error"]["kind"]) == (3, "machine")


def test_a_run_whose_worker_was_killed_says_how_to_go_on() -> None:
    run = make_run(runs_folder())
    cut(run.events, 9)
    cut(run.monitor, 1)
    done = llmtui("show", "last")
    assert "interrupted" in done.out and f"llmtui resume {run.id}" in done.out
    assert llmtui("wait", run.id).code == 4


def test_export_to_where_nothing_can_be_written(tmp_path: Path) -> None:
    run = make_run(runs_folder())
    refused(llmtui("export", run.id, "-o", str(tmp_path / "no" / "file.md")), 3, "cannot be written", "-o")
    refused(llmtui("export", run.id, "--format", "pdf"), 2, "pdf", "md")
    done = llmtui("export", run.id, "--format", "json", "-o", str(tmp_path / "out.json"))
    assert done.code == 0
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["id"] == run.id


def test_merge_says_what_it_cannot_merge(tmp_path: Path) -> None:
    run = make_run(runs_folder())
    refused(llmtui("merge", run.id, "-o", str(tmp_path)), 5, "exists already")


def test_a_step_that_is_no_step() -> None:
    run = make_run(runs_folder())
    refused(llmtui("resume", f"{run.id}@soon"), 2, '"soon" is not a step')
    refused(llmtui("resume", run.id, "--from", "77"), 5, "no checkpoint of step 77")


@pytest.mark.parametrize("command", [["ls"], ["status"], ["presets"], ["gpus"]])
def test_an_empty_home_is_no_error(command: list[str]) -> None:
    assert llmtui(*command).code == 0
    llmtui(*command, "--json").json  # noqa: B018
