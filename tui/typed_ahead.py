"""Keys typed faster than the app works: each waits until the one before it has done its work.

Textual hands a key to the focused widget, from where it climbs to the app before a binding acts. Over a slow line
several arrive at once, and those behind a key that moves the focus or opens a dialog would go where the focus was:
`/demo` would filter nothing and press `d`, `e`, `m` and `o`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from textual import events
from textual.app import App, ScreenStackError
from textual.message_pump import MessagePump

_LONGEST: Final = 3.0  # seconds: should a mark be lost, the keyboard comes back

Typed = events.Key | events.Paste


class TypedAhead:
    """The keys of one app, in order. A mark follows each key through the same queues, up to the app and its screen."""

    def __init__(self, app: App[Any], deliver: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._deliver = deliver
        self._waiting: deque[Typed] = deque()
        self._turn = 0
        self._busy = False

    async def type(self, event: Typed) -> None:
        """Deliver a key now, or when those before it are done."""
        if self._busy:
            self._waiting.append(event)
        else:
            await self._send(event)

    async def _send(self, event: Typed) -> None:
        self._busy = True
        self._turn += 1
        target = self._target()
        try:
            await self._deliver(event)
        except ScreenStackError:  # the app has ended under the keys
            self._waiting.clear()
            return
        asyncio.get_running_loop().call_later(_LONGEST, self._give_up, self._turn)
        self._climb(target, self._turn, self._acted)

    def _target(self) -> MessagePump | None:
        if not self._app.screen_stack:
            return None
        return self._app.focused or self._app.screen

    def _climb(self, node: MessagePump | None, turn: int, at_the_top: Callable[[int], Any]) -> None:
        while node is not None and node is not self._app:
            above = node._parent
            if node.call_later(self._climb, above, turn, at_the_top):
                return
            node = above
        self._app.call_later(at_the_top, turn)

    def _acted(self, turn: int) -> None:
        # What the key did may have told others (a field that was submitted, a screen that was opened): follow that too.
        self._climb(self._target(), turn, self._next)

    def _give_up(self, turn: int) -> None:
        if turn == self._turn and self._busy:
            self._app.call_later(self._next, turn)

    async def _next(self, turn: int) -> None:
        if turn != self._turn or not self._busy:
            return
        self._busy = False
        if self._waiting:
            await self._send(self._waiting.popleft())
