"""The form: a line per key of the schema, sections as headings, one line being typed at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.events import Key, Paste
from textual.message import Message
from textual.strip import Strip

from llmtui.tui import keys
from llmtui.tui.widgets.editor_field import TypingField
from llmtui.tui.widgets.editor_rows import FieldRow, FormRow, SectionRow, can_stand, find
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, cut, strip_of, visible

_LEFT: Final = 4  # the cursor and the sign
_MARGIN: Final = 2  # rows that stay in sight above and below the cursor
_ROOM_FOR_NAME: Final = 27  # `per_device_train_batch_size`


class EditorForm(Pane):
    """Rows with a cursor. It changes nothing itself: it says where the cursor stands and what is typed."""

    BINDINGS = keys.bindings("list")
    SCOPES = ("list",)
    DEFAULT_CSS = "EditorForm TypingField { position: absolute; display: none; }"

    class Moved(Message):
        """The cursor stands on another row."""

    class Typed(Message):
        """The text of the field that is being typed changed."""

        def __init__(self, key: str, text: str) -> None:
            super().__init__()
            self.key = key
            self.text = text

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, EditorForm.Typed)

    def __init__(self, ended: Callable[[str], None], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.field = TypingField(ended, fed=True, id="typing")
        self.open_field: TypingField | None = None
        self._holding = False
        self._held: list[Key] = []
        self.rows: tuple[FormRow, ...] = ()
        self.heading: Line = ()
        self.note: Line = ()
        self.typing: str | None = None
        self._cursor = 0
        self._top = 0

    def compose(self) -> ComposeResult:
        yield self.field

    # --- what it shows

    def show(self, rows: tuple[FormRow, ...]) -> None:
        """Put rows in place; the cursor keeps its key."""
        first = not self.rows
        key = self.row.key if self.rows else None
        self.rows = rows
        index = next((i for i, row in enumerate(rows) if row.key == key), 0)
        self._cursor = index
        if first or not can_stand(rows[index]):
            self._go(index, 1)
        self.repaint()

    @property
    def row(self) -> FormRow:
        """The row under the cursor."""
        return self.rows[self._cursor]

    @property
    def standing(self) -> bool:
        """Whether there is a row under the cursor."""
        return bool(self.rows)

    # --- keys: all of them come here, in order, and each is obeyed before the next (see `editor_field`)

    async def _on_key(self, event: Key) -> None:
        if self._holding:
            event.stop()
            event.prevent_default()
            self._held.append(event)
            return
        if self.open_field is not None:
            event.stop()
            event.prevent_default()
            await self.open_field.feed(event)
            return
        for holder in (self, self.screen):
            for binding in holder._bindings.key_to_bindings.get(event.key, ()):
                event.stop()
                event.prevent_default()
                await self.app.run_action(binding.action, holder)
                return

    def on_paste(self, event: Paste) -> None:
        """Into the field that is open."""
        event.stop()
        if self.open_field is not None:
            self.open_field.paste(event.text)

    def hold_keys(self) -> None:
        """Something is being done that may ask: keys wait."""
        self._holding = True

    def release_keys(self) -> None:
        """Keys that waited go to whoever has the focus now."""
        self._holding = False
        held, self._held = self._held, []
        for key in held:
            self.app.post_message(Key(key.key, key.character))

    # --- moving

    def action_move(self, by: int) -> None:
        self._go(self._cursor + by, by)

    def action_page(self, by: int) -> None:
        page = max(1, self.size.height - 2)
        self._go(max(0, min(len(self.rows) - 1, self._cursor + by * page)), by)

    def action_top(self) -> None:
        self._top = 0
        self._go(0, 1)

    def action_bottom(self) -> None:
        self._go(len(self.rows) - 1, -1)

    def key_for(self, key: str) -> str:
        """This key, or the nearest one above it that has a row to stand on; empty when none has."""
        standing = {row.key for row in self.rows if can_stand(row)}
        while key and key not in standing:
            key = key.rpartition(".")[0]
        return key

    def go_to(self, key: str) -> bool:
        """Stand on this key, or the nearest one above it."""
        key = self.key_for(key)
        for index, row in enumerate(self.rows):
            if key and row.key == key and can_stand(row):
                self._go(index, 1)
                return True
        return False

    def go_section(self, by: int) -> None:
        """The first field of the next or previous section."""
        starts = [i for i, row in enumerate(self.rows) if isinstance(row, SectionRow)]
        here = max((i for i in starts if i <= self._cursor), default=0)
        place = starts.index(here) + by if here in starts else 0
        if by < 0 and self._cursor > here + 1:
            place += 1
        if 0 <= place < len(starts):
            self._top = max(0, min(starts[place], len(self.rows) - self._page()))
            self._go(starts[place], 1)

    def search(self, text: str, *, start: int | None = None, step: int = 1) -> bool:
        """Stand on the next row whose key has this text; whether there is one."""
        index = find(self.rows, text, self._cursor if start is None else start, step)
        if index is not None:
            self._go(index, step)
        return index is not None

    def search_on(self, text: str, step: int) -> bool:
        """The next hit after this row, or the one before."""
        return self.search(text, start=self._cursor + step, step=step)

    @property
    def cursor(self) -> int:
        return self._cursor

    def _go(self, index: int, step: int) -> None:
        index = max(0, min(index, len(self.rows) - 1))
        way = 1 if step >= 0 else -1
        target: int | None = index
        while target is not None and not can_stand(self.rows[target]):
            target = target + way if 0 <= target + way < len(self.rows) else None
        if target is None:
            target = next((i for i in range(index, -1, -way) if 0 <= i < len(self.rows) and can_stand(self.rows[i])), 0)
        if target != self._cursor:
            self._cursor = target
            self.post_message(self.Moved())
        self.repaint()

    def _page(self) -> int:
        return max(1, self.size.height - 1)

    # --- typing

    def begin_typing(self) -> None:
        """Open the text field over the value of the row under the cursor."""
        row = self.row
        if not isinstance(row, FieldRow):
            return
        self.typing = row.key
        self.open_field = self.field
        self.repaint()
        self.field.display = True
        self._place_field()
        text = row.text if row.is_set else ""
        self.field.begin(text, row.choices, row.default if not row.is_set else "null")

    def end_typing(self) -> None:
        """Close the text field."""
        self.typing = self.open_field = None
        self.field.display = False
        self.repaint()

    def on_input_changed(self, event: TypingField.Changed) -> None:
        event.stop()
        if self.typing is not None and event.value == self.field.value:
            self.post_message(self.Typed(self.typing, event.value))

    def on_resize(self) -> None:
        super().on_resize()
        if self.typing is not None:
            self._place_field()

    def _place_field(self) -> None:
        left = _LEFT + self._name_width() + 1
        self.field.styles.offset = (left, self._cursor - self._top + 1)
        self.field.styles.width = max(1, self.size.width - left - 1)

    # --- drawing

    def title(self) -> tuple[Line, Line]:
        fields = [i for i, row in enumerate(self.rows) if isinstance(row, FieldRow)]
        here = sum(1 for i in fields if i <= self._cursor)
        right: list[Piece] = [*self.note]
        if fields:
            right.append((("  " if right else "") + f"{here}/{len(fields)}", "faint"))
        return self.heading, right

    def content(self, width: int, height: int) -> list[Strip]:
        if not self.rows:
            return []
        # The heading of the first section is seen when its first field is reached from below.
        upper = self._cursor
        while upper > 0 and not can_stand(self.rows[upper - 1]):
            upper -= 1
        margin = min(_MARGIN, (height - 1) // 2)
        lower = min(len(self.rows) - 1, self._cursor + margin)
        self._top = max(self._top, lower - height + 1)
        self._top = max(0, min(self._top, upper, self._cursor - margin, len(self.rows) - height))
        return [self._strip(index, width) for index in range(self._top, min(self._top + height, len(self.rows)))]

    def _strip(self, index: int, width: int) -> Strip:
        row = self.rows[index]
        here = index == self._cursor
        mark = (Drawing.glyphs.cursor + " ", "key") if here else ("  ", "text")
        within = self.has_focus or self.typing is not None
        ground = ("cursor_focused" if within else "cursor") if here else "text"
        if isinstance(row, SectionRow):
            return strip_of([mark, *_section_pieces(row)], width, ground)
        return strip_of([mark, *self._field_pieces(row, width - 2, here)], width, ground)

    def _field_pieces(self, row: FieldRow, width: int, here: bool) -> list[Piece]:
        room = self._name_width()
        name = cut(row.name, room)
        sign, style = self._sign(row)
        text_style = "faint" if row.off or not row.is_set else "strong" if row.changed else "text"
        after = self._after(row)
        value_room = max(1, width - 2 - room - 1 - 1)
        after_cells = cell_len(visible(after)) + 2 if after else 0
        if after_cells > value_room - 6:
            after, after_cells = "", 0
        value = self._value(row, value_room - after_cells, here)
        gap = " " * max(0, value_room - after_cells - cell_len(value))
        pieces: list[Piece] = [
            (sign + " ", style),
            (name + " " * (room - cell_len(name)) + " ", "faint" if row.off or not row.is_set else "text"),
            (value, text_style),
        ]
        if after:
            pieces += [(gap + "  ", "text"), (after, "faint")]
        return pieces

    def _value(self, row: FieldRow, room: int, here: bool) -> str:
        if here and row.choices and self.typing is None and room > cell_len(visible(row.text)) + 4:
            left, right = ("‹ ", " ›") if Drawing.glyphs.braille else ("< ", " >")
            return left + cut(row.text, room - 4) + right
        return cut(row.text, room)

    def _after(self, row: FieldRow) -> str:
        if row.off:
            return "off"
        unit = row.unit
        if not row.is_set:
            return f"{unit} {Drawing.glyphs.dot} default" if unit else "default"
        return unit

    def _sign(self, row: FieldRow) -> Piece:
        if row.problem:
            return Drawing.glyphs.bad_point, "bad"
        if row.later:
            return "!", "warn"
        if row.changed:
            return "*", "busy"
        return " ", "text"

    def _name_width(self) -> int:
        return max(12, min(_ROOM_FOR_NAME, self.size.width // 2 - _LEFT))


def _section_pieces(row: SectionRow) -> list[Piece]:
    pieces: list[Piece] = [(row.key, "title_focused")]
    if row.optional:
        pieces.append((f"  [{'on' if row.on else 'off'}]", "strong" if row.on else "faint"))
    if row.note:
        pieces.append((f"  {row.note}", "faint"))
    return pieces
