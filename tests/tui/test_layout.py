"""Where the panes stand: whole at 80×24 with eight cards, no overlap and no overflow at any size."""

from __future__ import annotations

import pytest

from llmtui.tui.screens.run_layout import LOWER, PANES, arrange, is_wide


@pytest.mark.parametrize("gpus", [0, 1, 2, 8, 16])
@pytest.mark.parametrize("lower", LOWER)
def test_panes_fill_the_place_without_overlap_at_every_size(gpus: int, lower: str) -> None:
    for width in (1, 2, 20, 40, 80, 139, 140, 200, 300):
        for height in (1, 2, 3, 5, 8, 12, 15, 22, 31, 32, 48, 100):
            for full in (None, "log", "chart"):
                regions = arrange(width, height, gpus=gpus, lower=lower, full=full)
                taken: set[tuple[int, int]] = set()
                for name, region in regions.items():
                    assert region.width > 0 and region.height > 0, (name, region)
                    assert region.right <= width and region.bottom <= height
                    cells = {(x, y) for x in range(region.x, region.right) for y in range(region.y, region.bottom)}
                    assert not cells & taken
                    taken |= cells


def test_eighty_by_twenty_four_has_everything_with_eight_cards() -> None:
    regions = arrange(80, 22, gpus=8, lower="log")
    assert set(regions) == {"head", "chart", "hardware", "log"}
    assert regions["hardware"].height == 6  # a title, two cards to a line, the host
    assert regions["chart"].height >= 6
    assert regions["log"].height >= 3


def test_a_large_terminal_shows_every_pane_at_once() -> None:
    assert is_wide(200, 48)
    assert set(arrange(200, 48, gpus=1, lower="log")) == {"head", *PANES}


def test_a_low_terminal_keeps_the_head_and_the_chart() -> None:
    assert set(arrange(80, 10, gpus=0, lower="log")) == {"head", "chart"}
