"""A pane sends only the cells that differ."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from llmtui.tui.widgets.pane import _changed

BOLD = Style(bold=True)


@pytest.mark.parametrize(
    ("old", "new", "cells"),
    [
        ([Segment("ab"), Segment("cd")], [Segment("abcd")], (0, 0)),
        ([Segment("学習", BOLD)], [Segment("学", BOLD), Segment("習", BOLD)], (0, 0)),
        ([], [Segment("")], (0, 0)),
        ([Segment("abcd")], [Segment("abxd")], (2, 1)),
        ([Segment("abcd")], [Segment("abcx")], (3, 1)),
        ([Segment("abcd")], [Segment("abc"), Segment("d", BOLD)], (3, 1)),
        ([Segment("a学d")], [Segment("a習d")], (1, 2)),
        ([Segment("a学d")], [Segment("axyd")], (1, 2)),
        ([Segment("abc")], [Segment("abcd")], (0, 4)),
    ],
)
def test_only_the_cells_that_differ(old: list[Segment], new: list[Segment], cells: tuple[int, int]) -> None:
    region = _changed(0, Strip(old), Strip(new))
    assert (region.x, region.width) == cells
