"""Numbers as people read them; the unknown is "–", and nothing gets longer than its place."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core import words

NIGHT = 1_780_254_000.0  # 2026-05-31 19:00 UTC, a Sunday


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.23456, "1.235"),
        (12.3456, "12.35"),
        (0.0, "0.000"),
        (1e30, "1.0e+30"),
        (3e-9, "3.0e-09"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_losses(value: float | None, shown: str) -> None:
    assert words.number(value) == shown


@given(st.floats())
def test_no_loss_is_longer_than_its_column(value: float) -> None:
    assert len(words.number(value)) <= 9


@pytest.mark.parametrize(
    ("value", "shown"), [(13.21, "13.2"), (0.6666, "0.667"), (17204.4, "17,204"), (None, "–"), (math.inf, "–")]
)
def test_rates(value: float | None, shown: str) -> None:
    assert words.rate(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3.9, "3 s"),
        (276, "4 min 36 s"),
        (7500, "2 h 05 min"),
        (273_600, "3 d 04 h"),
        (-1, "–"),
        (math.inf, "–"),
        (None, "–"),
    ],
)
def test_durations(value: float | None, shown: str) -> None:
    assert words.duration(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(512, "512 B"), (51_380_224, "49 MiB"), (85_899_345_920, "80 GiB"), (None, "–")]
)
def test_sizes(value: int | None, shown: str) -> None:
    assert words.size(value) == shown


def test_a_clock_names_the_day_when_it_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert words.clock(NIGHT + 600, NIGHT) == "19:10"
    assert words.clock(NIGHT + 12 * 3600, NIGHT) == "Mon 07:00"
    assert words.clock(NIGHT - 90_000, NIGHT) == "2026-05-30 18:00"
    assert words.clock(1e300, NIGHT) == "–"


def test_it_is_not_all_done_before_it_is() -> None:
    assert words.percent(9_999, 10_000) == "99 %"
    assert words.percent(10_000, 10_000) == "100 %"
    assert words.percent(5, 0) == "–"
