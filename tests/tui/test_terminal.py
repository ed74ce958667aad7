"""In a real terminal: it ends with it, says what goes on, speaks ASCII, and lets no foreign byte through."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import ioctl
from pathlib import Path

import pyte
import pytest

from llmtui.core.errors import MachineError
from llmtui.core.runs import locks
from llmtui.core.runs.directory import RunDirectory
from tests.tui.screen import DEMO, EVENING, HOSTILE

OPEN = (
    "import sys; from pathlib import Path; from llmtui.tui.app import run_app;"
    "sys.exit(run_app(Path(sys.argv[1]), *sys.argv[2:]))"
)


class Terminal:
    """The app in a pseudo-terminal of its own, and the screen that its output paints."""

    def __init__(
        self, home: Path, *arguments: str, rows: int = 24, columns: int = 80, before: str = "", **env: str
    ) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}
        environment.pop("COLORTERM", None)

        def own_terminal() -> None:
            os.setsid()
            ioctl(0, termios.TIOCSCTTY, 0)
            if before == "ignore-hangup":
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        self.process = subprocess.Popen(
            [sys.executable, "-c", OPEN, str(home), *arguments], stdin=slave, stdout=slave, stderr=slave,
            env=environment, preexec_fn=own_terminal,  # noqa: PLW1509
        )  # fmt: skip
        os.close(slave)
        self.output = b""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    def read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return
            try:
                block = os.read(self.master, 1 << 16)
            except OSError:
                return
            self.output += block
            self._stream.feed(re.sub(rb"\x1b\[[<>=?][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p", b"", block))

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def until(self, condition: Callable[[], object], what: str, limit: float = 20.0) -> None:
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}\n{self.text}"
            self.read(0.05)

    def send(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self, limit: float = 10.0) -> int:
        end = time.monotonic() + limit
        while (code := self.process.poll()) is None:
            assert time.monotonic() < end, f"it has not ended\n{self.text}"
            self.read(0.02)
        self.read(0.2)
        return code


@contextmanager
def terminal(home: Path, *arguments: str, **options: object) -> Iterator[Terminal]:
    opened = Terminal(home, *arguments, **options)  # type: ignore[arg-type]
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        with suppress(OSError):
            os.close(opened.master)


@pytest.fixture
def alive(home: Path) -> Iterator[None]:
    directory = RunDirectory(home / "runs" / EVENING)
    with ExitStack() as held:
        held.enter_context(locks.take(directory.supervisor_lock))
        held.enter_context(locks.take(directory.worker_lock, "shared"))
        yield


def test_q_leaves_and_says_that_the_run_goes_on(home: Path, alive: None) -> None:
    with terminal(home, EVENING) as opened:
        opened.until(lambda: "180/300" in opened.text, "the run")
        opened.send("\x03")
        opened.until(lambda: "q leaves, runs go on; S stops a run" in opened.text, "what ctrl+c says")
        assert opened.process.poll() is None
        opened.send("q")
        assert opened.ended() == 0
    after = opened.output.rpartition(b"\x1b[?1049l")[2].decode()
    assert f"the run {EVENING} goes on; come back with: llmtui attach {EVENING}" in after


def test_a_closed_terminal_ends_it_at_once(home: Path) -> None:
    with terminal(home, DEMO) as opened:
        opened.until(lambda: "240/240" in opened.text, "the run")
        os.close(opened.master)
        assert opened.process.wait(timeout=5) != 0


def test_a_closed_terminal_ends_it_even_without_a_hang_up_signal(home: Path) -> None:
    with terminal(home, DEMO, before="ignore-hangup") as opened:
        opened.until(lambda: "240/240" in opened.text, "the run")
        os.close(opened.master)
        opened.process.wait(timeout=5)


def test_sigterm_gives_the_terminal_back(home: Path) -> None:
    with terminal(home, DEMO) as opened:
        opened.until(lambda: "240/240" in opened.text, "the run")
        opened.process.terminate()
        opened.ended()
    assert b"\x1b[?1049l" in opened.output and b"\x1b[?25h" in opened.output


def test_any_number_of_terminals_on_one_run(home: Path, alive: None) -> None:
    with terminal(home, EVENING) as first, terminal(home, EVENING, rows=50, columns=200) as second:
        first.until(lambda: "180/300" in first.text, "the run in the first")
        second.until(lambda: "180/300" in second.text, "the run in the second")
        first.process.kill()
        second.send("s")
        second.until(lambda: "smoothed 0.99" in second.text, "an answer of the second")


def test_hostile_text_sends_no_byte_of_its_own_to_the_terminal(home: Path) -> None:
    with terminal(home, HOSTILE, rows=50, columns=200) as opened:
        opened.until(lambda: "20/50" in opened.text, "the run")
        opened.send("\t\t\t\t2")
        opened.until(lambda: "[@click=app.quit]q[/]" in opened.text, "the list")
        opened.until(lambda: "\\x1b" in opened.text, "escapes written out")
    written = opened.output.decode("utf-8", "replace")
    commands = set(re.findall("\x1b\\](\\d*)", written))
    assert commands <= {"22"}  # Textual's own: the shape of the pointer; no title (0), no clipboard (52)
    assert not re.search("\x1b\\[6n|\x1b\\[2J|[\x80-\x9f\u202a-\u202e\u2066-\u2069]|\x00", written)
    assert "\\x1b" in opened.text


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"NO_COLOR": ""}], ids=["set", "empty"])
def test_no_color(home: Path, env: dict[str, str]) -> None:
    with terminal(home, DEMO, **env) as opened:
        opened.until(lambda: "240/240" in opened.text, "the run")
    colours = re.findall(
        rb"\x1b\[[0-9;]*(?:38|48);[25];[0-9;]+m|\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7])m", opened.output
    )
    assert not colours


def test_without_utf8_every_byte_is_ascii(home: Path) -> None:
    with terminal(home, HOSTILE, LC_ALL="POSIX", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0") as opened:
        opened.until(lambda: "20/50" in opened.text, "the run")
        opened.send("\t\t\t")
        opened.read(0.5)
    assert opened.output.isascii()


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_draw_is_told_so(home: Path, term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmtui.tui.app import run_app

    monkeypatch.setenv("TERM", term)
    with pytest.raises(MachineError, match="cannot draw screens"):
        run_app(home)


def test_watching_imports_no_torch(home: Path) -> None:
    source = (
        "import sys, llmtui.tui.app, llmtui.tui.screens.run, llmtui.tui.screens.runs, llmtui.tui.screens.presets;"
        "heavy = {'torch', 'transformers', 'numpy', 'datasets', 'peft', 'matplotlib', 'pydantic'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
