"""What the reading commands show: the same story, for people and for programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from llmtui.core.home import runs_folder
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from tests.core.runs.whole_run import make_run
from tests.data.make_runs import RUNS
from tests.tui.commands.command import llmtui
from tests.tui.commands.test_bad_input import cut


@pytest.fixture
def run() -> RunDirectory:
    """The ended run with everything in it."""
    return make_run(runs_folder())


def test_ls_show_export_and_the_files_tell_the_same_story(run: RunDirectory) -> None:
    (row,) = llmtui("ls", "--json").json
    whole = llmtui("show", "last", "--json").json
    exported = llmtui("export", "last", "--format", "json").json
    assert row == {name: whole[name] for name in row}
    assert json.dumps(exported) == json.dumps(whole).replace("hf_abcdefghijklmnop12345", "hf_\\u2026")
    assert llmtui("export", "last", "--json").json == exported
    assert row["state"] == "finished" and row["step"] == row["total_steps"] == 12
    assert llmtui("status", "--json").json[0]["id"] == run.id


def test_people_read_the_same_numbers(run: RunDirectory) -> None:
    shown = llmtui("show", run.id)
    assert shown.code == 0
    for words in ("12 of 12", "2.875 → nan", "1.750, best 1.500", "50 %", "GPU 3", "peak 10 GiB allocated",
                  "What is ⏎ the time? *now* → twelve ⏎ o'clock", f"{run.path}/adapter"):  # fmt: skip
        assert words in shown.out, words
    listed = llmtui("ls").out.splitlines()
    assert listed[0].split() == ["run", "state", "steps", "loss", "it/s", "left", "created"]
    assert "12/12" in listed[1] and "finished" in listed[1]
    assert llmtui("status").out == "night finished, step 12, loss –\n"
    assert llmtui("export", run.id).out.startswith("# 20231114-221320-night\n")


def test_a_living_run_is_shown_alive(run: RunDirectory) -> None:
    cut(run.events, 9)
    cut(run.monitor, 2)
    with locks.take(run.supervisor_lock), locks.take(run.worker_lock):
        (row,) = llmtui("ls", "--json").json
        assert (row["state"], row["alive"], row["step"], row["exit_code"]) == ("running", True, 4, None)
        assert "night running 33 %, loss 2.500" in llmtui("status").out


def test_status_names_every_living_run_and_else_the_last(run: RunDirectory) -> None:
    other = make_run(runs_folder(), "20231113-000000-other")
    for directory in (run, other):
        cut(directory.monitor, 2)
        cut(directory.events, 9)
    with locks.take(run.supervisor_lock), locks.take(other.supervisor_lock):
        assert llmtui("status").out.count("running") == 2
    assert llmtui("status").out.count("night") == 1


@pytest.mark.parametrize("reference", ["last", "night", "mine", "20231114-221320-night", "20231114-2213"])
def test_a_run_is_found_by_what_a_person_remembers(run: RunDirectory, reference: str) -> None:
    done = llmtui("show", reference, "--json")
    assert done.json["id"] == run.id
    assert done.err == "", "a program is told nothing else"


def test_fixed_runs_of_earlier_versions_are_read() -> None:
    shutil.copytree(RUNS, runs_folder(), dirs_exist_ok=True)
    rows = llmtui("ls", "--json").json
    assert len(rows) == len(list(runs_folder().iterdir()))
    listed = llmtui("ls").out
    assert "学習テスト①" in listed
    for row in rows:
        if row["state"] != "damaged":
            assert llmtui("show", row["id"]).code == 0


def test_columns_are_aligned_by_cells() -> None:
    from rich.cells import cell_len

    from llmtui.tui.commands.output import columns

    lines = columns(("name", "n"), [["学習", "1"], ["a", "22"], ["\x1b[31m👨‍👩‍👧", "3"]], right=(1,)).splitlines()
    assert len({cell_len(line) for line in lines}) == 1
    assert "\x1b" not in "".join(lines)


def test_logs(run: RunDirectory) -> None:
    assert "has printed nothing" in llmtui("logs", run.id).err
    run.output.write_bytes("one\n 10%\r 50%\r100%\r\n\x1b[31mred [link=x]\n日本\n".encode() + b"\xff last")
    assert llmtui("logs", run.id).out.splitlines() == ["one", "100%", "\\x1b[31mred [link=x]", "日本", "� last"]
    assert llmtui("logs", run.id, "-f").code == 0, "an ended run is not followed"


def test_a_large_log_is_whole_and_quick(run: RunDirectory) -> None:
    run.output.write_bytes(b"".join(b"line %d\n" % n for n in range(200_000)))
    lines = llmtui("logs", run.id).out.splitlines()
    assert len(lines) == 200_000 and lines[-1] == "line 199999"


def test_presets(tmp_path: Path) -> None:
    names = {entry["name"]: entry["origin"] for entry in llmtui("presets", "--json", folder=tmp_path).json}
    assert names["demo"] == "bundled"
    assert llmtui("presets", "new", "mine", "--from", "demo").code == 0
    again = llmtui("presets", "new", "mine", "--from", "demo")
    assert again.code == 5 and "already" in again.err
    names = {entry["name"]: entry["origin"] for entry in llmtui("presets", "ls", "--json", folder=tmp_path).json}
    assert names["mine"] == "user"
    assert llmtui("presets", "diff", "demo", "mine").out == "they do not differ\n"
    found = llmtui("presets", "diff", "opencalm-7b-dolly-ja", "rinna-3.6b-dolly-ja", "--json").json
    assert {difference["key"] for difference in found} == {"description", "model.name_or_path", "dataset.template"}
    assert llmtui("presets", "show", "mine", "--json").json["task"] == "finetune"
    assert "mine is valid" in llmtui("presets", "check", "mine").out
    assert llmtui("presets", "check", "llama-3.1-8b-zero2", "--json").json["later"]


def test_a_shown_preset_can_be_run_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "again.yaml"
    path.write_text(llmtui("presets", "show", "demo").out)
    assert llmtui("presets", "diff", "demo", str(path), "--json").json == []


def test_editing_a_bundled_preset_makes_a_copy(llmtui_home: Path) -> None:
    done = llmtui("presets", "edit", "demo", env={"EDITOR": "sed -i s/^description:.*/description:/", "VISUAL": ""})
    copy = llmtui_home / "presets" / "demo.yaml"
    assert copy.is_file() and str(copy) in done.err
    broken = llmtui("presets", "edit", "demo", env={"EDITOR": "sed -i s/^task:.*/task:·nothing/", "VISUAL": ""})
    assert broken.code == 2 and "demo.yaml:" in broken.err
    assert llmtui("presets", "edit", "demo", env={"EDITOR": "/no/editor", "VISUAL": ""}).code == 3


def test_forecast() -> None:
    done = llmtui("forecast", "opencalm-7b-dolly-ja", "--set", "training.num_train_epochs=1", "--json")
    assert done.json["total_steps"] == 1_627
    assert done.json["allocated"] == sum(part["bytes"] for part in done.json["parts"])
    assert "≈" in llmtui("forecast", "opencalm-7b-dolly-ja").out


def test_gpus_say_why_there_are_none() -> None:
    found = llmtui("gpus", "--json").json
    assert isinstance(found["gpus"], list)
    if not found["gpus"]:
        assert found["note"] in llmtui("gpus").out
