"""The Textual app: places, keys, theme. It only composes; what is shown is in `screens` and `widgets`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from llmtui.tui import terminal

terminal.prepare_textual()  # Textual reads its environment when it is imported

from textual import events  # noqa: E402
from textual.app import App  # noqa: E402
from textual.screen import Screen  # noqa: E402

from llmtui.core.errors import LlmtuiError, MachineError, PresetError, Problem, UsageError  # noqa: E402
from llmtui.core.runs.directory import RunDirectory  # noqa: E402
from llmtui.tui import keys  # noqa: E402
from llmtui.tui.actions import Actions, PresetDetails  # noqa: E402
from llmtui.tui.glyphs import terminal_glyphs  # noqa: E402
from llmtui.tui.reading import Reading  # noqa: E402
from llmtui.tui.theme import THEME  # noqa: E402
from llmtui.tui.typed_ahead import TypedAhead  # noqa: E402
from llmtui.tui.widgets.pane import Drawing  # noqa: E402

if TYPE_CHECKING:
    from llmtui.tui.screens.place import Place

T = TypeVar("T")
_ADOPT_AFTER: Final = 1.0  # seconds after the first paint
_ADOPT_PAUSE: Final = 30.0  # seconds between two attempts


def _presets() -> Screen[Any]:
    from llmtui.tui.screens.presets import PresetsPlace

    return PresetsPlace()


def _runs() -> Screen[Any]:
    from llmtui.tui.screens.runs import RunsPlace

    return RunsPlace()


def _run() -> Screen[Any]:
    from llmtui.tui.screens.run import RunPlace

    return RunPlace()


class LlmtuiApp(App[None], inherit_bindings=False):
    """The places over one home folder."""

    TITLE = "llmtui"
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False
    BINDINGS = keys.bindings("app")
    MODES = {"presets": _presets, "runs": _runs, "run": _run}
    CSS = """
    #filter { dock: bottom; height: 1; border: none; padding: 0 1; background: $panel; offset-y: -1; }
    """

    def __init__(self, home: Path, *, open_run: RunDirectory | None = None, actions: Actions | None = None) -> None:
        colour = "NO_COLOR" not in os.environ
        # Textual reads it from the instance; a first screen of another mode would be one paint too many.
        self.DEFAULT_MODE = "run" if open_run is not None else "presets"  # type: ignore[misc]
        super().__init__(ansi_color=None if colour else True)
        Drawing.set_up(colour=colour, glyphs=terminal_glyphs())
        self.register_theme(THEME)
        self.theme = THEME.name
        self.runs = home / "runs"
        self.home_shown = terminal.short_path(home)
        self.actions = actions or Actions()
        self.reading = Reading(self.runs)
        self._open_run = open_run
        self._typed = TypedAhead(self, super().on_event)
        self._adopt_again = 0.0
        self._asking = False
        self.preset_written: Path | None = None
        """A preset that was just saved: the cursor of the Presets place goes there."""

    # --- life

    async def on_event(self, event: events.Event) -> None:
        """Keys and pastes wait for each other; everything else is Textual's."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._typed.type(event)
        else:
            await super().on_event(event)

    def on_mount(self) -> None:
        self.reading.start()
        terminal.end_with_terminal(self)
        self.set_timer(_ADOPT_AFTER, self.adopt)

    def adopt(self) -> None:
        """A run was seen whose supervisor is gone: give it a new one, as every llmtui command does."""
        now = time.monotonic()
        if now < self._adopt_again:
            return
        self._adopt_again = now + _ADOPT_PAUSE

        def adopted(names: list[str]) -> None:
            if names and self.place is not None:
                self.place.say(f"adopted {', '.join(names)}: the supervisor was gone, the run went on", "warn")

        self._in_thread(lambda: self.actions.adopt_orphans(self.runs), adopted)

    def on_unmount(self) -> None:
        self.reading.stop()

    # --- places

    @property
    def place(self) -> Place | None:
        """The place under all dialogs."""
        from llmtui.tui.screens.place import Place

        places = [screen for screen in self.screen_stack if isinstance(screen, Place)]
        return places[-1] if places else None

    def action_go(self, place: str) -> None:
        """To a place."""
        if place != self.current_mode:
            self.switch_mode(place)
        elif self.place is self.screen and self.place.PLACE == "data":
            self.pop_screen()

    def open_run(self, directory: RunDirectory) -> None:
        """To the Run place, on this run."""
        self._open_run = directory
        self.action_go("run")

    def run_to_show(self) -> RunDirectory | None:
        """The run that was opened last, else the newest."""
        if self._open_run is None:
            from llmtui.core.runs.reader import run_directories

            try:
                everything = run_directories(self.runs)
            except OSError:
                return None
            self._open_run = everything[-1] if everything else None
        return self._open_run

    def forget_run(self, directory: RunDirectory) -> None:
        """This run is gone."""
        if self._open_run == directory:
            self._open_run = None

    # --- presets

    def run_preset(self, path: Path, known: PresetDetails | None = None) -> None:
        """Show what the preset will do, and start it when that is confirmed.

        What is known already is shown at once, so that an enter typed right behind is for the dialog.
        """
        if known is not None:
            self._confirm_start(known)
        elif not self._asking:
            self._asking = True
            self._with_details(path, self._confirm_start)

    def _confirm_start(self, details: PresetDetails) -> None:
        from llmtui.tui.screens.start_run import StartDialog

        self._asking = False

        def start(agreed: bool | None) -> None:
            if agreed:
                self._in_thread(lambda: self.actions.start_run(details), self._started)

        self.push_screen(StartDialog(details), start)

    def _started(self, directory: RunDirectory) -> None:
        self.open_run(directory)

    def edit_preset(self, path: Path) -> None:
        """Open the editor on a preset that can be read."""

        def edit(details: PresetDetails) -> None:
            if details.loaded is None:
                self.show_problems(details.name, details.problems)
                return
            from llmtui.tui.screens.editor import EditorScreen

            self.push_screen(EditorScreen(details.loaded))

        self._with_details(path, edit)

    def look_at_data(self, path: Path, known: PresetDetails | None = None) -> None:
        """Open the screen on what a preset that can be read is trained on."""

        def look(details: PresetDetails) -> None:
            if details.loaded is None:
                self.show_problems(details.name, details.problems)
                return
            from llmtui.tui.screens.data import DataScreen

            if not isinstance(self.place, DataScreen):
                self.push_screen(DataScreen(details))

        if known is not None:
            look(known)
        else:
            self._with_details(path, look)

    def on_editor_screen_saved(self, message: Any) -> None:
        """The editor wrote a preset."""
        place = self.place
        if place is not None:
            place.say(f"saved: {message.path}", "good")
        self.preset_written = message.path

    def on_editor_screen_closed(self) -> None:
        """Back to the presets."""
        from llmtui.tui.screens.editor import EditorScreen

        if isinstance(self.screen, EditorScreen):
            self.pop_screen()

    def on_editor_screen_run_requested(self, message: Any) -> None:
        """The editor's preset is to be run."""
        self.run_preset(message.path)

    def _with_details(self, path: Path, then: Callable[[PresetDetails], None]) -> None:
        self._in_thread(lambda: self.actions.preset_details(path), then)

    def _in_thread(self, act: Callable[[], T], then: Callable[[T], None]) -> None:
        """Do something slow away from the screen; then go on, or show what went wrong."""

        def work() -> None:
            try:
                answer = act()
            except Exception as error:  # shown; nothing that a key starts takes the screen down
                self.call_from_thread(self.show_error, error)
            else:
                self.call_from_thread(then, answer)

        self.run_worker(work, thread=True, exit_on_error=False)

    def show_problems(self, name: str, problems: Sequence[Problem]) -> None:
        """Everything that is wrong with a preset."""
        from llmtui.tui.screens.message import MessageDialog

        lines = []
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        for problem in problems:
            lines.append((f"{problem.file}:{problem.line or '?'}  {problem.field}  {problem.problem}", "text"))
            lines.append((f"  {Drawing.glyphs.arrow} {problem.cure}", "key"))
        self.push_screen(MessageDialog(f"{name} has {count}", lines, style="bad"))

    # --- keys that work everywhere

    def action_step_back(self) -> None:
        if self.place is not None:
            self.place.action_step_back()

    def action_next_pane(self) -> None:
        if self.place is not None:
            self.place.action_next_pane()

    def action_previous_pane(self) -> None:
        if self.place is not None:
            self.place.action_previous_pane()

    def action_full_pane(self) -> None:
        if self.place is not None:
            self.place.action_full_pane()

    def action_leave(self) -> None:
        self.exit()

    def action_told(self) -> None:
        place = self.place
        if place is not None:
            place.say("ctrl+c stops nothing here. q leaves, runs go on; S stops a run", "warn", 8.0)

    def action_help(self) -> None:
        from llmtui.tui.screens.help import HelpDialog

        place = self.place
        if place is not None:
            self.push_screen(HelpDialog(keys.keys_of(*place.scopes())))

    def action_palette(self) -> None:
        from llmtui.tui.screens.palette import Entry, Palette

        place = self.place
        if place is None:
            return
        entries = [Entry(key.help, key.shown, key.action) for key in place.palette_keys() if key.action != "palette"]

        async def do(entry: Entry | None) -> None:
            if entry is not None:
                await self.run_action_of_table(entry.action)

        self.push_screen(Palette(entries), do)

    async def run_action_of_table(self, action: str) -> None:
        """Do an action of the key table where a key would: focused pane, place, app."""
        place = self.place
        if place is None:
            return
        name = action.partition("(")[0]
        for node in (place.focused, place, self):
            if node is not None and hasattr(node, f"action_{name}"):
                await self.run_action(action, default_namespace=node)
                return

    # --- a word with the user

    def show_error(self, error: Exception) -> None:
        """An error with its place and cure, until it is closed."""
        self._asking = False
        from llmtui.tui.screens.message import MessageDialog

        if isinstance(error, PresetError):
            self.show_problems("the preset", error.problems)
            return
        if isinstance(error, LlmtuiError):
            lines = [(f"{error.place}: {error.message}" if error.place else error.message, "text")]
            if error.hint:
                lines += [("", "text"), (f"{Drawing.glyphs.arrow} {error.hint}", "key")]
        elif isinstance(error, OSError):
            lines = [(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), "text")]
        else:
            lines = [(f"{type(error).__name__}: {error}", "text"), ("this is a fault of llmtui; runs go on", "faint")]
        self.push_screen(MessageDialog("That did not work", lines, style="bad"))

    def copy(self, text: str) -> None:
        """To the clipboard of the terminal (OSC 52), and to tmux's buffer."""
        from llmtui.core.text import safe_text

        clean = safe_text(text, newlines=True)
        self.copy_to_clipboard(clean)
        terminal.copy_to_tmux(clean)
        place = self.place
        if place is not None:
            first = clean.split("\n", 1)[0]
            place.say(f"copied: {first}", "good", 4.0)


def run_app(home: Path, open_run: str | None = None) -> int:
    """Open the screen and stay until it is left.

    Args:
        home: the home folder.
        open_run: a run to open the Run place on: as `llmtui attach` takes it.

    Returns:
        The exit code.

    Raises:
        MachineError: this terminal cannot draw screens.
        UsageError: there is no such run.
    """
    reason = terminal.cannot_draw()
    if reason:
        raise MachineError(reason, hint="llmtui ls, show and logs work in any terminal; or set TERM=xterm-256color")
    directory = None
    if open_run is not None:
        from llmtui.core.runs.reader import find_run

        directory, step, _ = find_run(home / "runs", open_run)
        if step is not None:
            raise UsageError("the screen opens whole runs, not one checkpoint", place=open_run,
                             hint=f"write {directory.id}")  # fmt: skip
    app = LlmtuiApp(home, open_run=directory)
    app.run(mouse=False)
    goes_on = terminal.what_goes_on(home / "runs")
    if goes_on:
        sys.stdout.write(goes_on + "\n")
    return app.return_code or 0
