"""The run a user means, and a run read while it is written."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest

from llmtui.core.errors import DataError, MachineError, RefusedError, UsageError
from llmtui.core.files import write_atomically
from llmtui.core.runs import events as ev
from llmtui.core.runs import locks, requests
from llmtui.core.runs.attempt import AttemptGpu, AttemptInfo, read_attempt, write_attempt
from llmtui.core.runs.directory import RunDirectory, clean_name, create_run
from llmtui.core.runs.log import EventWriter
from llmtui.core.runs.reader import RunReader, find_run, read_state, run_directories


def make(runs: Path, name: str = "demo", preset: str = "demo") -> RunDirectory:
    return create_run(
        runs, "task: finetune\n", name=name, preset_name=preset, task="finetune", description="", command=["llmtui"]
    )


@pytest.mark.parametrize("reference", ["last@²", "last@٣", "last@-1", "last@1.5", "last@", "last@x"])
def test_what_is_no_step_is_said(tmp_path: Path, reference: str) -> None:
    make(tmp_path)
    with pytest.raises(UsageError, match="is not a step"):
        find_run(tmp_path, reference)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x: [", b"- 1", b"", b"attempt: one"])
def test_a_damaged_attempt_is_named(tmp_path: Path, content: bytes) -> None:
    directory = make(tmp_path)
    directory.attempt_file(1).write_bytes(content)
    (directory.attempts / "².yaml").write_bytes(content)
    assert directory.last_attempt() == 1
    with pytest.raises(DataError, match="is missing or damaged"):
        read_attempt(directory, 1)


def test_what_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as error:
        write_atomically(directory.user_file, b"{}")
    assert error.value.filename == str(directory.user_file)
    with pytest.raises(MachineError, match="the request cannot be written, so the run goes on: No space left"):
        requests.send(directory, "stop", 1)


def test_a_copied_folder_is_a_run_of_its_own_name(tmp_path: Path) -> None:
    first = make(tmp_path)
    copy = RunDirectory(tmp_path / "20990101-000000-copy")
    shutil.copytree(first.path, copy.path)
    assert [read_state(d).id for d in run_directories(tmp_path)] == [first.id, copy.id]
    assert find_run(tmp_path, copy.id)[0] == copy


def test_ids_are_unique_within_a_second(tmp_path: Path) -> None:
    made = [make(tmp_path) for _ in range(5)]
    assert len({d.id for d in made}) == 5
    assert run_directories(tmp_path) == made


def test_a_run_directory_is_private(tmp_path: Path) -> None:
    directory = make(tmp_path)
    assert directory.path.stat().st_mode & 0o777 == 0o700
    assert directory.preset.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "a\\b", "x@3", "", "..", "\n", "a\x00b", "last", "-last-"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UsageError):
        clean_name(name)


def test_names_of_any_script_work(tmp_path: Path) -> None:
    directory = make(tmp_path, name="学習テスト① $(touch x); rm")
    assert directory.path.parent == tmp_path
    assert directory.info().name == "学習テスト①-touch-x-rm"
    assert len(clean_name("学" * 200).encode()) <= 80


def test_a_reference_is_an_id_a_name_a_preset_or_last(tmp_path: Path) -> None:
    first = make(tmp_path, name="tuned", preset="opencalm")
    second = make(tmp_path, name="other", preset="opencalm")
    assert find_run(tmp_path, first.id)[0] == first
    assert find_run(tmp_path, "tuned")[0] == first
    latest, step, said = find_run(tmp_path, "opencalm@200")
    assert (latest, step) == (second, 200)
    assert second.id in said
    assert find_run(tmp_path, "last")[0] == second


def test_an_unknown_or_bad_reference_gets_a_sentence(tmp_path: Path) -> None:
    for reference in ("none", "last", "x@y"):
        with pytest.raises(UsageError):
            find_run(tmp_path, reference)


def test_destructive_commands_refuse_what_is_ambiguous(tmp_path: Path) -> None:
    make(tmp_path)
    make(tmp_path)
    with pytest.raises(RefusedError, match="2 runs"):
        find_run(tmp_path, "demo", destructive=True)


def test_a_growing_run_is_read_piece_by_piece(tmp_path: Path) -> None:
    directory = make(tmp_path)
    reader = RunReader(directory)
    assert reader.poll().state == "interrupted"
    with locks.take(directory.supervisor_lock), EventWriter(directory.monitor) as monitor:
        monitor.write(ev.StateEvent(state="running"))
        assert reader.poll().state == "running"
        with EventWriter(directory.events) as writer:
            for number in range(1, 5001):
                writer.write(ev.Step(step=number, epoch=0, loss=1.0, learning_rate=1e-3, seconds=0.1))
        state = reader.poll(limit_bytes=50_000)
        assert state.curve.length > 0
        while not reader.caught_up:
            state = reader.poll(limit_bytes=50_000)
        assert state.curve.length == 5000
        monitor.write(ev.StateEvent(state="finished", exit_code=0))
    assert reader.poll().state == "finished"


def test_a_run_of_100_000_steps_opens_within_the_budget(tmp_path: Path) -> None:
    directory = make(tmp_path)
    lines = [
        ev.encode(ev.Step(n=n, t=1e9 + n, m=n / 10, step=n + 1, epoch=0.1, loss=1.0, learning_rate=1e-3, seconds=0.1))
        for n in range(100_000)
    ]
    directory.events.write_bytes(b"".join(lines))
    begin = time.monotonic()
    state = read_state(directory)
    seconds = time.monotonic() - begin
    assert state.curve.length == 100_000
    assert seconds < 4  # the budget of 1 s is measured in bench/; this limit is for a loaded machine


def test_a_damaged_run_json_is_named(tmp_path: Path) -> None:
    directory = make(tmp_path)
    directory.info_file.write_text("{")
    with pytest.raises(DataError, match=r"run\.json"):
        RunReader(directory)
    assert find_run(tmp_path, directory.id)[0] == directory


def test_a_request_reaches_its_attempt_only(tmp_path: Path) -> None:
    directory = make(tmp_path)
    sent = requests.send(directory, "stop", attempt=2)
    (directory.requests / "1-1.json").write_text("{broken")
    assert requests.pending(directory, 1) == []
    assert requests.pending(directory, 2) == [sent]
    requests.remove(directory, sent)
    assert requests.pending(directory, 2) == []


def test_an_attempt_file_comes_back(tmp_path: Path) -> None:
    directory = make(tmp_path)
    info = AttemptInfo(
        attempt=3, started=1.5, checkpoint="checkpoints/checkpoint-20", from_step=20,
        gpus=[AttemptGpu(index=0, uuid="GPU-日本", name="x: [y] #z")], versions={"torch": "2.13.0"},
    )  # fmt: skip
    write_attempt(directory, info)
    assert read_attempt(directory, 3) == info
    assert directory.last_attempt() == 3
    directory.attempt_file(3).write_text("[")
    with pytest.raises(DataError):
        read_attempt(directory, 3)
