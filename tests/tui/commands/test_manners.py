"""Start-up, odd terminals, pipes, help: the manners of a command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtui.core.home import runs_folder
from llmtui.core.runs import locks
from tests.core.runs.whole_run import make_run
from tests.tui.commands.command import llmtui
from tests.tui.commands.test_bad_input import cut

BUILT = {
    "run", "ls", "show", "status", "attach", "logs", "stop", "checkpoint", "resume", "rm", "export", "forecast", "evaluate", "data",
    "fetch",
    "merge", "gpus", "wait", "presets",
}  # fmt: skip


def test_help_names_what_is_built_and_nothing_else() -> None:
    lines = llmtui("--help").out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert {line.split()[0] for line in lines} == BUILT
    assert all(len(line) <= 80 and not line.endswith("...") for line in lines), "each sentence is whole at 80 columns"


@pytest.mark.parametrize("command", [["--help"], ["ls"], ["show", "last"], ["status"], ["presets"], ["run", "--help"]])
def test_no_command_imports_torch_or_textual(command: list[str]) -> None:
    make_run(runs_folder())
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "llmtui.tui.commands", *command], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "llmtui" in loaded
    assert not loaded & {"torch", "transformers", "datasets", "textual", "matplotlib", "numpy", "plotext"}


def test_help_is_there_at_once() -> None:
    def seconds(*arguments: str) -> float:
        begin = time.monotonic()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        return time.monotonic() - begin

    ratios = [seconds("-m", "llmtui.tui.commands", "--help") / seconds("-c", "import typer") for _ in range(5)]
    assert min(ratios) < 2.5, "0.4 s on an idle machine, where importing the parser alone takes 0.2 s"


def test_the_version() -> None:
    from llmtui.core.version import version

    assert llmtui("--version").out == f"llmtui {version()}\n"


@pytest.mark.parametrize("setting", [{"LC_ALL": "POSIX"}, {"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_terminal_without_utf8_gets_ascii(setting: dict[str, str]) -> None:
    make_run(runs_folder(), "20231114-221320-学習")
    for command in (["show", "last"], ["ls"], ["export", "last"], ["forecast", "demo"], ["show", "nobody"]):
        done = llmtui(*command, env=setting)
        assert (done.out + done.err).isascii(), command
    assert llmtui("show", "last", "--json", env=setting).json["id"] == "20231114-221320-学習"
    assert llmtui("export", "last", "--format", "json", env=setting).json["id"] == "20231114-221320-学習"


def test_a_reader_that_leaves_is_no_error() -> None:
    run = make_run(runs_folder())
    run.output.write_bytes(b"line\n" * 500_000)
    for arguments in (["logs", run.id], ["export", run.id], ["show", run.id, "--json"]):
        command = [sys.executable, "-m", "llmtui.tui.commands", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.read(4)
            process.stdout.close()
            assert process.stderr.read() in (b"", f"last is {run.id}\n".encode())
            assert process.wait(timeout=60) == 0


def test_the_exit_code_does_not_depend_on_a_reader() -> None:
    run = make_run(runs_folder())
    cut(run.events, 9)
    cut(run.monitor, 2)
    for arguments, code in ((["show", "nobody"], 2), (["show", "nobody", "--json"], 2), (["wait", run.id], 4)):
        line = shlex.join([sys.executable, "-m", "llmtui.tui.commands", *arguments])
        done = subprocess.run(["bash", "-c", f"{line} 2>&1 | true; exit ${{PIPESTATUS[0]}}"], check=False)
        assert done.returncode == code, arguments


def test_who_stops_reading_a_run_has_detached() -> None:
    run = make_run(runs_folder())
    with locks.take(run.supervisor_lock), locks.take(run.worker_lock):
        reading, writing = os.pipe()
        os.close(reading)
        code = (
            "import sys; from pathlib import Path; from llmtui.core.runs.directory import RunDirectory; "
            "from llmtui.tui.commands.following import follow; sys.exit(follow(RunDirectory(Path(sys.argv[1])), False))"
        )
        done = subprocess.run([sys.executable, "-c", code, str(run.path)], stdout=writing, check=False, timeout=60)
        os.close(writing)
    assert done.returncode == 130, "it goes on: 0 would say that it has finished"


@pytest.mark.parametrize("arguments", [["ls"], ["ls", "--json"], ["--help"], ["show", "last"], ["export", "last"]])
def test_a_full_disk_behind_the_output_is_one_sentence(arguments: list[str]) -> None:
    make_run(runs_folder())
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "llmtui.tui.commands", *arguments], stdout=full, check=False,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert done.returncode == 3
    assert "No space left on device" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_without_a_terminal_the_runs_are_listed() -> None:
    run = make_run(runs_folder())
    assert run.id in llmtui().out


def test_without_any_streams_it_does_not_fall(tmp_path: Path) -> None:
    make_run(runs_folder())
    code = subprocess.run(f"exec {sys.executable} -m llmtui.tui.commands <&- 2>{tmp_path / 'err'} | cat",
                          shell=True, check=False).returncode  # fmt: skip
    assert code == 0 and "Traceback" not in (tmp_path / "err").read_text()


def test_a_screen_needs_a_terminal() -> None:
    run = make_run(runs_folder())
    done = llmtui("attach", run.id)
    assert done.code == 3
    assert "not a terminal" in done.err or "cannot draw" in done.err
    assert "llmtui ls" in done.err


def test_outside_text_never_reaches_the_terminal_as_it_is() -> None:
    run = make_run(runs_folder())
    run.output.write_bytes(b"\x1b]0;title\x07\x9b31m\xe2\x80\xae\n")
    for command in (["show", run.id], ["logs", run.id], ["export", run.id], ["ls"]):
        raw = llmtui(*command).out
        assert not any(ord(c) < 32 and c != "\n" for c in raw), command
        assert "\x9b" not in raw and "\u202e" not in raw


def test_commands_look_for_orphans_but_start_nothing_without_one() -> None:
    run = make_run(runs_folder())
    before = run.monitor.read_bytes()
    llmtui("ls")
    assert run.monitor.read_bytes() == before
    assert not (run.path / "supervisor.log").exists()


def test_files_are_only_for_their_owner(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert llmtui("ls", env={"LLMTUI_HOME": str(home)}).code == 0
    assert os.stat(home).st_mode & 0o777 == 0o700
