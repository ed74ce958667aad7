"""The smallest app an editor can live in, and the words of a test about it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from textual.app import App
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot

from llmtui.core.preset import LoadedPreset, parse_preset
from llmtui.tui.glyphs import UNICODE
from llmtui.tui.screens.editor import EditorScreen
from llmtui.tui.theme import THEME
from llmtui.tui.widgets.pane import Drawing


class SmallApp(App[None], inherit_bindings=False):
    """Shows one editor; keeps what it says."""

    ENABLE_COMMAND_PALETTE = False
    home_shown = "~/llmtui"

    def __init__(self, loaded: LoadedPreset) -> None:
        super().__init__()
        Drawing.set_up(colour=True, glyphs=UNICODE)
        self.register_theme(THEME)
        self.theme = THEME.name
        self.loaded = loaded
        self.saved: list[Path] = []
        self.to_run: list[Path] = []
        self.closed = False
        self.errors: list[Exception] = []

    def on_mount(self) -> None:
        self.push_screen(EditorScreen(self.loaded))

    def on_editor_screen_saved(self, message: EditorScreen.Saved) -> None:
        self.saved.append(message.path)

    def on_editor_screen_run_requested(self, message: EditorScreen.RunRequested) -> None:
        self.to_run.append(message.path)

    def on_editor_screen_closed(self) -> None:
        self.closed = True
        self.pop_screen()

    def show_error(self, error: Exception) -> None:
        self.errors.append(error)

    @property
    def editor(self) -> EditorScreen:
        """The editor, also below a dialog."""
        return next(screen for screen in self.screen_stack if isinstance(screen, EditorScreen))


def app_on(text: str, path: Path) -> SmallApp:
    """An editor on a file with this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return SmallApp(parse_preset(text, path))


def burst(app: SmallApp, *keys: str) -> None:
    """Keys as a slow line delivers them: all at once. A text of more than one letter after `=` is typed."""
    for key in keys:
        for name, character in _keys_of(key):
            app.post_message(Key(name, character))


def _keys_of(key: str) -> Iterator[tuple[str, str | None]]:
    if key.startswith("=") and len(key) > 1:
        yield from ((_character_to_key(character), character) for character in key[1:])
    else:
        yield key, key if len(key) == 1 else {"space": " ", "slash": "/"}.get(key)


async def until(pilot: Pilot[None], condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for a condition; fail when it does not come true."""
    step = 0.01
    for _ in range(int(seconds / step)):
        if condition():
            return
        await pilot.pause(step)
    raise AssertionError("the condition did not come true")


if __name__ == "__main__":  # a real terminal runs it: python -m tests.tui.editor.small_app FILE
    file = Path(sys.argv[1])
    SmallApp(parse_preset(file.read_text(encoding="utf-8"), file)).run(mouse=False)
