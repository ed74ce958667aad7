"""How the editor keeps what was edited: saving, copies, `$EDITOR`, leaving. The form is in `editor`."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from textual.app import SuspendNotSupported
from textual.message import Message
from textual.timer import Timer

from llmtui.core.errors import LlmtuiError, MachineError, PresetError, UsageError
from llmtui.core.files import write_atomically
from llmtui.core.preset import copy_to_user, library, parse_preset
from llmtui.core.preset.library import preset_path
from llmtui.tui.screens.dialog import Dialog
from llmtui.tui.screens.editor_dialogs import Difference, Overwrite, SaveAs, Unreadable, Unsaved
from llmtui.tui.screens.place import Place
from llmtui.tui.widgets.editor_document import Document
from llmtui.tui.widgets.editor_draft import read_draft, remove_draft, write_draft
from llmtui.tui.widgets.editor_external import edit_text
from llmtui.tui.widgets.editor_form import EditorForm
from llmtui.tui.widgets.pane import Piece

_DRAFT_PAUSE: Final = 1.0  # seconds
_SIGNS: Final = {"+": "good", "-": "bad", "@": "faint"}


class EditorKeeping(Place, inherit_bindings=False):
    """What the editor does with files. Every way out asks before something unsaved goes."""

    PLACE = "editor"

    class Saved(Message, namespace="editor_screen"):
        """The preset stands in this file."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class RunRequested(Message, namespace="editor_screen"):
        """The preset in this file is to be run; it is valid."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Closed(Message, namespace="editor_screen"):
        """The editor was left."""

    def __init__(self, document: Document, *, bundled: bool | None = None) -> None:
        super().__init__()
        self.document = document
        path = document.path
        inside = path is not None and path.resolve().is_relative_to(library.bundled_folder().resolve())
        self._bundled = inside if bundled is None else bundled

        self._draft_timer: Timer | None = None

    def show_document(self) -> None:
        """Bring every pane up to date with the document."""
        raise NotImplementedError

    # --- edits that outlive a lost terminal

    def draft_soon(self) -> None:
        """Keep the unsaved text a moment after the last change."""
        if self._draft_timer is not None:
            self._draft_timer.stop()
        self._draft_timer = self.set_timer(_DRAFT_PAUSE, self._keep_draft)

    def _keep_draft(self) -> None:
        path, saved, text = self.document.path, self.document.saved, self.document.text
        if path is None:
            return

        def keep() -> None:
            with contextlib.suppress(OSError, LlmtuiError):  # a full disk must not end the editing
                write_draft(path, saved, text)

        self.run_worker(keep, thread=True, group="draft")

    def take_up_draft(self) -> None:
        """Go on with what an earlier terminal left unsaved."""
        path = self.document.path
        draft = read_draft(path, self.document.saved) if path is not None else None
        if draft is not None and Document.readable(draft):
            self.document.replace(draft)
            self.say(
                "unsaved changes of an earlier session are here again: d shows them, u takes them away", "warn", 12.0
            )

    def _forget_draft(self, *paths: Path | None) -> None:
        if self._draft_timer is not None:
            self._draft_timer.stop()
        for path in paths:
            if path is not None:
                with contextlib.suppress(OSError, LlmtuiError):
                    remove_draft(path)

    @property
    def shown_name(self) -> str:
        """The preset's name."""
        return self.document.path.stem if self.document.path is not None else "new preset"

    @property
    def needs_name(self) -> bool:
        """Whether saving makes a new file: a bundled preset, a new one, or a file that may not be written."""
        path = self.document.path
        return path is None or self._bundled or (path.exists() and not os.access(path, os.W_OK))

    @property
    def origin_note(self) -> str:
        """Said beside the name."""
        if self._bundled:
            return "  bundled: saved as your copy"
        return "  saved as a copy: the file is read-only" if self.needs_name and self.document.path else ""

    # --- the keys

    def action_save(self) -> None:
        self._do(self._save_and_say())

    def action_run_preset(self) -> None:
        self._do(self._run())

    def action_close(self) -> None:
        self._do(self._close())

    def action_leave_editor(self) -> None:
        self._do(self._leave())

    def action_external_edit(self) -> None:
        self._do(self._external_edit())

    def action_difference(self) -> None:
        lines: list[Piece] = [(line, _SIGNS.get(line[:1], "text")) for line in self.document.difference()]
        self.app.push_screen(Difference(self.shown_name, lines))

    # --- what they do; one at a time, errors are shown and end nothing

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self.query_one(EditorForm).hold_keys()
        self.run_worker(self._shown(work), group="keeping", exclusive=True)

    async def _shown(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (LlmtuiError, OSError) as error:
            self.llmtui.show_error(error)
        finally:
            for form in self.query(EditorForm):
                form.release_keys()

    async def _ask(self, dialog: Dialog[str]) -> str | None:
        """The dialog's answer; keys that were pressed meanwhile are for the dialog."""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        await self.app.push_screen(dialog, lambda given: None if answer.done() else answer.set_result(given))
        self.query_one(EditorForm).release_keys()
        return await answer

    async def _save_and_say(self) -> None:
        if not self.document.changed and not self.needs_name:
            self.say("nothing to save", "faint")
            return
        if not await self._save():
            return
        count = len(self.document.checked.problems)
        but = f"; it cannot run before its {count} problem{'s' * (count > 1)} {'is' if count == 1 else 'are'} mended"
        self.say(f"saved: {self.document.path}{but if count else ''}", "warn" if count else "good")

    async def _save(self) -> bool:
        """Whether the text is in its file now."""
        document, opened = self.document, self.document.path
        if self.needs_name:
            path = await self._save_copy()
            if path is None:
                return False
            self._bundled = False
        else:
            path = document.path
            assert path is not None
            on_disk = await asyncio.to_thread(_text_of, path)
            if on_disk is not None and on_disk != document.saved and on_disk != document.text:
                answer = await self._ask(Overwrite(path.name))
                if answer != "save":
                    return False
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            await asyncio.to_thread(write_atomically, path, document.text.encode(), mode=mode)
        document.mark_saved(path)
        self.show_document()
        self._forget_draft(opened, path)
        self.post_message(self.Saved(path))
        return True

    async def _save_copy(self) -> Path | None:
        document = self.document
        source = document.path
        if document.checked.loaded is None:
            self.say("mend the problems first: a copy is made of a valid preset", "warn")
            return None
        lines: list[Piece] = [("A copy in your presets folder; the original stays as it is.", "text")]
        name = await self._ask(SaveAs(lines, _free_name(self.shown_name), name_problem))
        if name is None:
            return None
        path = await asyncio.to_thread(copy_to_user, source or Path("preset.yaml").absolute(), name, document.text)
        copied = await asyncio.to_thread(_text_of, path)
        if copied is not None and copied != document.text:  # relative paths were made absolute
            document.replace(copied)
        return path

    async def _run(self) -> None:
        document = self.document
        if document.checked.problems or document.checked.later:
            first = (*document.checked.problems, *document.checked.later)[0]
            self.say(f"not yet: {first.field} {first.problem}", "warn")
            return
        if (document.changed or document.path is None) and not await self._save():
            return
        if document.path is not None:
            self.post_message(self.RunRequested(document.path))

    async def _may_go(self) -> bool:
        """Whether nothing unsaved is left, or the user lets it go."""
        if not self.document.changed:
            self._forget_draft(self.document.path)
            return True
        lines = sum(1 for line in self.document.difference() if line[:1] in "+-")
        answer = await self._ask(Unsaved(self.shown_name, lines))
        if answer == "save":
            return await self._save()
        if answer == "drop":
            self._forget_draft(self.document.path)
        return answer == "drop"

    async def _close(self) -> None:
        if await self._may_go():
            self.post_message(self.Closed())

    async def _leave(self) -> None:
        if await self._may_go():
            self.app.exit()

    async def _external_edit(self) -> None:
        text = self.document.text
        while True:
            try:
                with self.app.suspend():
                    text = edit_text(text, f"{self.shown_name}.yaml")
            except SuspendNotSupported:
                raise MachineError(
                    "this terminal cannot be lent to another program", hint="edit the file beside llmtui"
                ) from None
            if Document.readable(text):
                break
            try:
                parse_preset(text, self.document.path)
                problems: tuple[str, ...] = ("it is not a map of keys and values",)
            except PresetError as error:
                problems = tuple(str(problem) for problem in error.problems)
            if await self._ask(Unreadable(problems)) != "again":
                self.say("the text is as it was before $EDITOR", "warn")
                return
        changed = self.document.replace(text)
        self.show_document()
        count = len(self.document.checked.problems)
        if count:
            self.say(f"{count} problem{'s' * (count > 1)}: p goes to the next one", "warn")
        else:
            self.say("taken over from $EDITOR; w saves" if changed else "nothing was changed in $EDITOR", "text")


def name_problem(name: str) -> str:
    """Why a preset of the user's cannot have this name; empty when it can."""
    try:
        path = preset_path(name)
    except UsageError as error:
        return f"{error.message}: {error.hint}"
    return f'you have a preset "{name}" already' if path.exists() else ""


def _free_name(name: str) -> str:
    candidates = (f"{name}-mine", *(f"{name}-{number}" for number in range(2, 100)))
    return next((candidate for candidate in candidates if not name_problem(candidate)), name)


def _text_of(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
