"""Where the panes of the Run place stand, by the size of the terminal. Pure arithmetic."""

from __future__ import annotations

from textual.geometry import Region

from llmtui.tui.widgets.hardware_pane import rows_needed

LOWER = ("log", "samples", "checkpoints", "warnings")
PANES = ("chart", "hardware", *LOWER)

WIDE_COLUMNS = 140
WIDE_ROWS = 32


def is_wide(width: int, height: int) -> bool:
    """Whether all lower panes have room at once."""
    return width >= WIDE_COLUMNS and height >= WIDE_ROWS


def arrange(width: int, height: int, *, gpus: int, lower: str, full: str | None = None) -> dict[str, Region]:
    """The region of each pane that is shown (none of them empty).

    Args:
        gpus: how many cards the hardware pane has to show.
        lower: the lower pane that is shown where only one has room.
        full: the pane that takes the whole place, below the head.
    """
    if width <= 0 or height <= 0:
        return {}
    head = min(5, height) if height >= 12 else min(3, height)
    regions = {"head": Region(0, 0, width, head)}
    rest = height - head
    if rest <= 0:
        return regions
    if full is not None:
        return regions | {full: Region(0, head, width, rest)}
    if is_wide(width, height):
        return regions | _wide(width, head, rest, gpus, height)
    return regions | _narrow(width, head, rest, gpus, lower, height)


def _narrow(width: int, top: int, rest: int, gpus: int, lower: str, height: int) -> dict[str, Region]:
    """One column: chart, machine, one lower pane; when it gets tight the lower pane goes first, then the machine."""
    hardware = rows_needed(gpus, height, width) if rest >= 5 else 0
    if rest - hardware < 5:
        hardware = 3 if rest >= 8 else 0
    left = rest - hardware
    log = 0 if left < 8 else min(max(3, left * 2 // 5), 16)
    if log and left - log < 6:
        log = 0
    chart = left - log
    regions = {"chart": Region(0, top, width, chart)}
    if hardware:
        regions["hardware"] = Region(0, top + chart, width, hardware)
    if log:
        regions[lower] = Region(0, top + chart + hardware, width, log)
    return regions


def _wide(width: int, top: int, rest: int, gpus: int, height: int) -> dict[str, Region]:
    """Two columns: chart over log, and beside them machine, answers, checkpoints, warnings."""
    right = min(90, max(60, width * 2 // 5))
    left = width - right - 1
    x = left + 1
    log = max(8, rest * 2 // 5)
    hardware = rows_needed(gpus, height, right)
    checkpoints, warnings = 7, 6
    samples = rest - hardware - checkpoints - warnings
    while samples < 6 and (checkpoints > 3 or warnings > 3):
        if checkpoints > 3:
            checkpoints -= 1
        if warnings > 3:
            warnings -= 1
        samples = rest - hardware - checkpoints - warnings
    return {
        "chart": Region(0, top, left, rest - log),
        "log": Region(0, top + rest - log, left, log),
        "hardware": Region(x, top, right, hardware),
        "samples": Region(x, top + hardware, right, samples),
        "checkpoints": Region(x, top + hardware + samples, right, checkpoints),
        "warnings": Region(x, top + hardware + samples + checkpoints, right, warnings),
    }
