"""The one table of keys. Bindings, footer, help and palette are made from it, so they cannot disagree.

No Textual here: the table can be read (and printed in docs) without opening a screen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from textual.binding import BindingType


@dataclass(frozen=True, slots=True)
class Key:
    """One action and the keys that do it.

    `scope` is where it works: `app`, a place, or a kind of pane. `footer` orders the hints of the last line
    (1 first, 0 = not there). `keys` are Textual's names, `shown` what is printed on the key.
    """

    scope: str
    keys: str
    shown: str
    action: str
    label: str
    help: str
    footer: int = 0
    priority: bool = False


SCOPE_NAMES: Final = {
    "app": "Everywhere",
    "list": "In a list",
    "text": "In a text",
    "presets": "Presets",
    "editor": "Editor",
    "data": "Data",
    "runs": "Runs",
    "run": "Run",
    "chart": "Loss chart",
    "log": "Log",
    "samples": "Sample answers",
    "checkpoints": "Checkpoints",
    "field": "While typing",
}

KEYS: Final[tuple[Key, ...]] = (
    Key("app", "1", "1", "go('presets')", "presets", "the presets: what can be run", 0),
    Key("app", "2", "2", "go('runs')", "runs", "all runs, queued, running and past", 0),
    Key("app", "3", "3", "go('run')", "run", "the run that was opened last (or the newest)", 0),
    Key("app", "colon,ctrl+p", ":", "palette", "all actions", "every action by name (ctrl+p too)", 91),
    Key("app", "question_mark", "?", "help", "help", "the keys that work here", 90),
    Key("app", "q", "q", "leave", "leave", "leave llmtui; runs go on without it", 92),
    Key("app", "escape", "esc", "step_back", "back", "one level back", 0),
    Key("app", "tab", "tab", "next_pane", "next pane", "the next pane", 70),
    Key("app", "shift+tab", "shift+tab", "previous_pane", "previous pane", "the pane before", 0),
    Key("app", "plus", "+", "full_pane", "full pane", "the focused pane alone, and back", 71),
    Key("app", "ctrl+c", "ctrl+c", "told", "", "says how to leave and how to stop a run; stops nothing", 0, True),
    # --- lists
    Key("list", "j,down", "j ↓", "move(1)", "down", "the next line"),
    Key("list", "k,up", "k ↑", "move(-1)", "up", "the line before"),
    Key("list", "g,home", "g", "top", "top", "the first line"),
    Key("list", "G,end", "G", "bottom", "bottom", "the last line"),
    Key("list", "pagedown,ctrl+d", "pgdn", "page(1)", "page down", "a page down (ctrl+d too)"),
    Key("list", "pageup,ctrl+u", "pgup", "page(-1)", "page up", "a page up (ctrl+u too)"),
    # --- texts
    Key("text", "j,down", "j ↓", "scroll(1)", "down", "a line down"),
    Key("text", "k,up", "k ↑", "scroll(-1)", "up", "a line up"),
    Key("text", "g,home", "g", "top", "top", "the beginning"),
    Key("text", "G,end", "G", "bottom", "bottom", "the end"),
    Key("text", "pagedown,ctrl+d", "pgdn", "page(1)", "page down", "a page down (ctrl+d too)"),
    Key("text", "pageup,ctrl+u", "pgup", "page(-1)", "page up", "a page up (ctrl+u too)"),
    # --- presets
    Key("presets", "r,enter", "r", "run_preset", "run", "start it: forecast and problems first, enter confirms", 1),
    Key("presets", "e", "e", "edit", "edit", "edit it in a form (a bundled preset is copied first)", 2),
    Key("presets", "E", "E", "external_edit", "$EDITOR", "edit your copy of it in $EDITOR", 5),
    Key("presets", "slash", "/", "filter", "filter", "show only what contains a text", 3),
    Key("presets", "i", "i", "data", "data", "what it will be trained on: rows, lengths, padding, samples", 4),
    Key("presets", "o", "o", "sort", "sort", "sort by origin, by name", 6),
    Key("presets", "D", "D", "delete", "delete", "delete your preset (type its name)", 7),
    Key("presets", "y", "y", "copy", "copy", "copy the name", 0),
    # --- data
    Key("data", "right_square_bracket", "]", "row(1)", "next", "the next row", 1),
    Key("data", "left_square_bracket", "[", "row(-1)", "previous", "the row before", 6),
    Key("data", "slash", "/", "search", "search", "the next row that holds a text, or stands at :LINE", 2),
    Key("data", "n", "n", "next(1)", "next hit", "the next row with the searched text (no search: the next row)", 5),
    Key("data", "N", "N", "next(-1)", "previous hit", "the row with it before (no search: the row before)"),
    Key("data", "t", "t", "side", "train/val", "validation rows instead of training rows, and back", 3),
    Key("data", "r", "r", "run_preset", "run", "start the preset: forecast and problems first", 7),
    Key("data", "y", "y", "copy", "copy", "copy the row's text"),
    Key("data", "escape", "esc", "step_back", "back", "out of the search, back to the presets", 4),
    # --- editor
    Key("editor", "enter", "enter", "edit", "edit", "type a value for the field (or switch the section)", 1),
    Key(
        "editor",
        "space,right,l",
        "space",
        "cycle(1)",
        "next choice",
        "the next choice; on and off (right and l too)",
        2,
    ),
    Key("editor", "left,h", "←", "cycle(-1)", "previous choice", "the choice before (h too)"),
    Key("editor", "x,delete", "x", "unset", "default", "back to the default: the key leaves the file", 6),
    Key("editor", "u", "u", "undo", "undo", "take the last change back", 5),
    Key("editor", "U", "U", "redo", "redo", "take the last undo back"),
    Key("editor", "slash", "/", "find", "find", "jump to a field by name", 3),
    Key("editor", "n", "n", "find_next(1)", "next hit", "the next field with that name"),
    Key("editor", "N", "N", "find_next(-1)", "previous hit", "the field before with that name"),
    Key("editor", "tab,right_square_bracket", "tab", "section(1)", "next section", "the next section (] too)"),
    Key(
        "editor",
        "shift+tab,left_square_bracket",
        "shift+tab",
        "section(-1)",
        "section before",
        "the section before ([ too)",
    ),
    Key("editor", "p", "p", "problem", "problem", "the next field with a problem", 9),
    Key("editor", "d", "d", "difference", "diff", "what changed since the file was opened", 8),
    Key("editor", "E", "E", "external_edit", "$EDITOR", "edit the text in $EDITOR, and come back", 10),
    Key("editor", "w", "w", "save", "save", "save (a bundled preset is saved as a copy of yours)", 4),
    Key("editor", "r", "r", "run_preset", "run", "save if needed, then start it", 7),
    Key("editor", "escape", "esc", "close", "back", "leave the editor; asks when changes are not saved", 0),
    Key("editor", "q", "q", "leave_editor", "leave", "leave llmtui; asks when changes are not saved", 0),
    # --- typing
    Key("field", "enter", "enter", "leave('keep')", "keep", "keep what is typed", 1),
    Key("field", "escape", "esc", "leave('cancel')", "cancel", "leave the field as it was", 2),
    Key("field", "tab,down", "tab", "leave('next')", "next", "keep it and type in the next field", 3),
    Key(
        "field", "shift+tab,up", "shift+tab", "leave('previous')", "previous", "keep it and type in the field before", 4
    ),
    Key("field", "ctrl+u", "ctrl+u", "clear_line", "clear", "clear the field", 5),
    # --- runs
    Key("runs", "enter", "enter", "open_run", "open", "look at the run", 1),
    Key("runs", "S", "S", "stop_menu", "stop", "stop it: with a checkpoint, without, or kill", 2),
    Key("runs", "R", "R", "resume", "resume", "go on from its last good checkpoint", 3),
    Key("runs", "c", "c", "checkpoint", "checkpoint", "save a checkpoint now", 5),
    Key("runs", "slash", "/", "filter", "filter", "show only what contains a text", 4),
    Key("runs", "o", "o", "sort", "sort", "sort by age, name, state, loss", 6),
    Key("runs", "x", "x", "export", "export", "write the hand-over summary", 7),
    Key("runs", "D", "D", "delete", "delete", "delete the run (type its name); never a live one", 8),
    Key("runs", "y", "y", "copy", "copy", "copy the id", 0),
    # --- one run
    Key("run", "S", "S", "stop_menu", "stop", "stop it: with a checkpoint, without, or kill", 1),
    Key("run", "R", "R", "resume", "resume", "go on from its last good checkpoint", 1),
    Key("run", "c", "c", "checkpoint", "checkpoint", "save a checkpoint now", 2),
    Key("run", "x", "x", "export", "export", "write the hand-over summary", 6),
    Key("run", "D", "D", "delete", "delete", "delete the run (type its name); never a live one", 0),
    Key("run", "s", "s", "smoothing", "smoothing", "smoothing of the loss: off, 0.6, 0.9, 0.99", 3),
    Key("run", "Y", "Y", "log_scale", "log", "logarithmic loss axis, and back", 4),
    Key(
        "run", "h", "h", "crosshair(-1)", "crosshair", "crosshair to the left (the exact values stand in the title)", 5
    ),
    Key("run", "l", "l", "crosshair(1)", "crosshair right", "crosshair to the right"),
    Key("run", "H", "H", "crosshair(-10)", "crosshair 10 left", "crosshair ten to the left"),
    Key("run", "L", "L", "crosshair(10)", "crosshair 10 right", "crosshair ten to the right"),
    Key("run", "f", "f", "follow", "follow", "the newest steps only, and back; in the log: its end"),
    Key("run", "0", "0", "reset_chart", "reset", "the whole curve, no crosshair, linear axis"),
    Key("run", "y", "y", "copy", "copy", "copy what the focused pane shows: values, answer, path or log"),
    Key("samples", "left_square_bracket", "[", "sample(-1)", "previous", "the prompt before"),
    Key("samples", "right_square_bracket", "]", "sample(1)", "next", "the next prompt", 1),
)


def keys_of(*scopes: str) -> list[Key]:
    """The table's entries of these scopes, innermost scope first; a key taken there hides it further out."""
    taken: set[str] = set()
    found: list[Key] = []
    for scope in scopes:
        entries = [key for key in KEYS if key.scope == scope]
        for key in entries:
            if any(name in taken for name in key.keys.split(",")):
                continue
            found.append(key)
        taken.update(name for key in entries for name in key.keys.split(","))
    return found


def bindings(scope: str) -> list[BindingType]:
    """The scope's entries as Textual bindings."""
    from textual.binding import Binding

    return [
        Binding(key.keys, key.action, key.label or key.help, show=False, priority=key.priority, key_display=key.shown)
        for key in KEYS
        if key.scope == scope
    ]
