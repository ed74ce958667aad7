"""How soon the program answers: `--help` and the first paint, beside bare scripts."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench.measure import interleaved, seconds_of, table
from bench.terminal import Terminal

_HELLO_CLI = "import typer\napp = typer.Typer()\n@app.command()\ndef hello(): print('hello')\napp(['--help'])\n"
_HELLO_TUI = (
    "from textual.app import App\nfrom textual.widgets import Static\n"
    "class Hello(App):\n    def compose(self): yield Static('Hello-World')\nHello().run(mouse=False)\n"
)


def _paint(command: list[str], text: str, home: str) -> float:
    with Terminal(command, env={"LLMTUI_HOME": home, "TEXTUAL_ANIMATIONS": "none"}) as terminal:
        return terminal.wait_for(text)


def main() -> str:
    """Markdown rows: command, seconds, ratio, budget."""
    llmtui = str(Path(sys.executable).parent / "llmtui")
    with tempfile.TemporaryDirectory() as home:
        os.environ["LLMTUI_HOME"] = home
        helps = interleaved(
            {
                "python -c pass": lambda: seconds_of([sys.executable, "-c", "pass"]),
                "typer hello --help": lambda: seconds_of([sys.executable, "-c", _HELLO_CLI]),
                "llmtui --help": lambda: seconds_of([llmtui, "--help"]),
                "llmtui ls": lambda: seconds_of([llmtui, "ls"]),
            },
            blocks=7,
        )
        paints = interleaved(
            {
                "Textual hello-world": lambda: _paint([sys.executable, "-c", _HELLO_TUI], "Hello-World", home),
                "llmtui, first paint": lambda: _paint([llmtui], "resets", home),
            },
            blocks=7,
        )
    help_ratio = helps["llmtui --help"].median / helps["typer hello --help"].median
    ratio = paints["llmtui, first paint"].median / paints["Textual hello-world"].median
    rows = [[t.name, f"{t.median:.3f}", t.spread, "", ""] for t in (*helps.values(), *paints.values())]
    rows[2][3:] = [f"{help_ratio:.2f} × typer hello", "≤ 0.4 s"]
    rows[5][3:] = [f"{ratio:.2f} × hello-world", "≤ 2 ×"]
    return table(["start-up", "median s", "spread", "ratio", "budget"], rows)


if __name__ == "__main__":
    print(main())
