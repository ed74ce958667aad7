"""One evening at 80×24, keyboard only, in a real terminal.

Pick, edit, save, run, detach, reattach, stop, resume, export.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from llmtui.core.home import home, runs_folder
from llmtui.core.preset import load_preset
from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.reader import read_state, run_directories
from tests.e2e.product import LLMTUI, wait_for, wait_until_final

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Tmux:
    """A tmux server of its own with one window of 80×24."""

    def __init__(self) -> None:
        self._socket = f"llmtui-{uuid.uuid4().hex[:8]}"
        self._run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-s", "evening", "env", "-u", "TMUX",
                  f"LLMTUI_HOME={home()}", "LC_ALL=C.UTF-8", "PS1=READY> ", "bash", "--norc", "--noprofile", "-i")  # fmt: skip
        self.until(lambda: "READY>" in self.text, "a shell")

    def _run(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return self._run("capture-pane", "-p", "-t", "evening")

    def until(self, condition: Callable[[], object], what: str, limit: float = 60.0) -> None:
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}\n{self.text}"
            time.sleep(0.05)

    def sees(self, *texts: str, limit: float = 60.0) -> None:
        self.until(lambda: all(text in self.text for text in texts), f"{texts} on the screen", limit)

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names (`Enter`, `Escape`) or as they are."""
        for name in names:
            self._run("send-keys", "-t", "evening", name)

    def type(self, text: str) -> None:
        self._run("send-keys", "-t", "evening", "-l", text)

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], check=False, capture_output=True)


@pytest.fixture
def terminal() -> Iterator[Tmux]:
    tmux = Tmux()
    yield tmux
    tmux.close()


def set_field(terminal: Tmux, name: str, value: str) -> None:
    """Jump to a field by its name, type a value, keep it."""
    terminal.keys("/")
    terminal.type(name)
    terminal.keys("Enter", "Enter", "C-u")
    terminal.type(value)
    terminal.keys("Enter")


def test_the_evening(terminal: Tmux) -> None:
    terminal.type(f"{LLMTUI}\n")
    terminal.sees("Presets", "demo")
    terminal.keys("/")
    terminal.type("demo")
    terminal.keys("Enter", "g")
    terminal.sees("island")

    terminal.keys("e")
    terminal.sees("saved as your copy", "quantization")
    for name, value in (("max_steps", "60"), ("save_steps", "30"), ("sample_prompts", "[Who keeps the lighthouse?]")):
        set_field(terminal, name, value)
    terminal.keys("w")
    terminal.sees("demo")
    terminal.keys("C-u")
    terminal.type("my-evening")
    terminal.keys("Enter")
    wait_for(lambda: (home() / "presets" / "my-evening.yaml").exists(), "the saved copy", 20)
    saved = load_preset("my-evening")
    assert (saved.preset.training.max_steps, saved.preset.checkpoints.save_steps) == (60, 30)
    assert "# held out" in saved.text

    terminal.keys("r")
    terminal.sees("Start", "my-evening")
    terminal.keys("Enter")
    directory: RunDirectory = wait_for(lambda: next(iter(run_directories(runs_folder())), None), "a run", 30)
    wait_for(lambda: read_state(directory).step >= 3, "three steps", 180)
    terminal.sees("loss")

    terminal.keys("q")
    terminal.sees("READY>", "goes on")
    assert read_state(directory).liveness.worker
    terminal.type(f"{LLMTUI} attach last\n")
    terminal.sees("my-evening", "loss")
    before = read_state(directory).step
    wait_for(lambda: read_state(directory).step > before, "a further step", 60)

    terminal.keys("S")
    terminal.sees("with a checkpoint")
    terminal.keys("Enter")
    state = wait_until_final(directory, 120)
    assert state.state == "stopped"
    assert state.checkpoints
    terminal.sees("stopped")

    def resumed() -> bool:
        terminal.keys("R")  # the screen may not have seen yet that the last process is gone
        end = time.monotonic() + 10
        while time.monotonic() < end and read_state(directory).attempt < 2:
            time.sleep(0.1)
        return read_state(directory).attempt == 2

    wait_for(resumed, "the second attempt", 90)
    state = wait_until_final(directory, 300)
    assert (state.state, state.step) == ("finished", 60)
    terminal.sees("finished")

    terminal.keys("x")
    wait_for(lambda: (directory.path / "summary.md").is_file(), "the summary", 60)
    terminal.keys("q")
    terminal.sees("READY>")
    assert "# " + directory.id in (directory.path / "summary.md").read_text("utf-8").replace("\\", "")
    assert (directory.path / "loss.svg").stat().st_size > 1000
