"""The editor in a real pseudo-terminal: `$EDITOR` is lent the terminal and comes back."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

TEXT = "# mine\nmodel: {name_or_path: a}\ndataset: {name_or_path: rows.jsonl}\n"

# Breaks the file at first, then leaves a preset with two mistakes, then a good one.
EDITOR = """\
#!/bin/sh
echo "the editor has the terminal: $(stty size)"
count=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((count + 1)) > "$0.count"
case $count in
0) printf 'model: [unclosed\\n' > "$1" ;;
1) printf '# by hand\\nmodel: {name_or_path: b}\\ndataset: {name_or_path: x, val_size: -3}\\ntrainin: {}\\n' > "$1" ;;
*) printf '# by hand\\nmodel: {name_or_path: c}\\ndataset: {name_or_path: rows.jsonl}\\n' > "$1" ;;
esac
"""


class Terminal:
    """A program on a pty of 80×24, and what its screen shows."""

    def __init__(self, *command: str, environment: dict[str, str]) -> None:
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.child = pexpect.spawn(
            command[0], list(command[1:]), dimensions=(24, 80), env={**os.environ, **environment}, timeout=1
        )

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def wait_for(self, text: str, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} did not come up:\n{self.text}"
            self._read()

    def _read(self) -> None:
        try:
            data = self.child.read_nonblocking(65536, timeout=0.1)
        except pexpect.TIMEOUT:
            return
        self.raw += data
        self._stream.feed(data)

    def press(self, keys: str) -> None:
        self.child.send(keys)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    editor = tmp_path / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT)
    environment = {
        "EDITOR": str(editor),
        "VISUAL": "",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
    }
    opened = Terminal(sys.executable, "-m", "tests.tui.editor.small_app", str(file), environment=environment)
    yield opened
    opened.child.close(force=True)


def test_the_users_own_editor_comes_back_with_errors_by_line(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("name_or_path")
    terminal.press("E")
    terminal.wait_for("The text cannot be read")
    assert b"the editor has the terminal: 24 80" in terminal.raw
    assert "mine.yaml:1" in terminal.text
    terminal.press("E")
    terminal.wait_for("2 problems")
    terminal.wait_for("line 3")
    assert "line 4" in terminal.text
    terminal.press("E")
    terminal.wait_for("taken over from $EDITOR")
    terminal.press("w")
    terminal.wait_for("saved:")
    assert (
        tmp_path / "mine.yaml"
    ).read_text() == "# by hand\nmodel: {name_or_path: c}\ndataset: {name_or_path: rows.jsonl}\n"


def test_keys_that_come_all_at_once_over_a_slow_line_are_obeyed_in_order(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("name_or_path")
    terminal.press("/training.seed\r\r\x152\rjx/lora.r\r\r32\rw")
    terminal.wait_for("saved:")
    text = (tmp_path / "mine.yaml").read_text()
    assert "seed: 2\n" in text and "r: 32\n" in text
