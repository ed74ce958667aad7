"""The published figures are shipped as they were printed, and their times give the rates that the sources missed."""

from __future__ import annotations

from statistics import linear_regression

import pytest

from llmtui.core.preset import load_preset
from llmtui.core.runs.reference import Reference, laws, references, references_of

DOLLY = ("opencalm-7b-dolly-ja", "rinna-3.6b-dolly-ja")


def test_every_figure_has_its_machine_its_source_and_the_formula_of_its_speed() -> None:
    assert len(references()) == 8 + 2 + 18
    for reference in references():
        assert load_preset(reference.preset).name == reference.preset
        assert reference.machine.gpu and reference.machine.gpu_memory_gb
        assert min(map(len, (reference.source, reference.conditions, reference.speed, reference.memory))) > 5
        assert reference.seconds > 0
    assert references_of("demo") == ()


@pytest.mark.parametrize("preset", DOLLY)
def test_iterations_per_second_are_steps_over_the_whole_time_as_printed(preset: str) -> None:
    rows = references_of(preset)
    assert len(rows) == 4
    for row in rows:
        assert row.steps == 4881
        assert row.it_per_second is not None
        assert round(row.it_per_second, 3) == row.printed["it_per_second"]
        assert row.it_per_second == 4881 / row.seconds


@pytest.mark.parametrize(
    ("preset", "from_times", "as_printed"),
    [
        ("opencalm-7b-dolly-ja", [1.0, 0.318, 0.219, 0.466], [1.0, 0.317, 0.220, 0.466]),
        ("rinna-3.6b-dolly-ja", [1.0, 0.389, 0.247, 0.490], [1.0, 0.388, 0.248, 0.489]),
    ],
)
def test_rates_from_the_times_differ_from_the_printed_ones_which_are_kept(
    preset: str, from_times: list[float], as_printed: list[float]
) -> None:
    rows = references_of(preset)
    assert [round(row.rate(rows[0]), 3) for row in rows] == from_times
    assert [row.printed["rate"] for row in rows] == as_printed
    rounded_first = [round(row.printed["it_per_second"] / rows[0].printed["it_per_second"], 3) for row in rows]
    assert rounded_first == as_printed, "the printed rates divide it/s that were rounded before"


def test_the_cards_and_what_they_showed_as_used() -> None:
    assert [(row.machine.gpu_memory_gb, row.used_mib, row.seconds) for row in references_of(DOLLY[0])] == [
        (40, 13189, 14890), (16, 14050, 46794), (16, 12351, 67915), (16, 11327, 31972),
    ]  # fmt: skip
    assert [row.used_mib for row in references_of(DOLLY[1])] == [8601, 8046, 8041, 6647]
    assert references_of(DOLLY[0])[3].machine.versions["torch"] == "2.0.1"
    assert references_of(DOLLY[0])[0].machine.versions == {}, "what a source does not say is not made up"


def test_two_cards_against_one() -> None:
    one, two = references_of("llama-3.1-8b-zero2")
    assert (one.machine.gpus, two.machine.gpus) == (1, 2)
    assert (one.batch, two.batch) == (4, 8)
    assert round(two.rate(one), 2) == 1.78
    assert one.it_per_second is None
    assert one.accuracy == two.accuracy == 0.85


@pytest.mark.parametrize(
    ("preset", "memory", "time"),
    [
        ("rinna-3.6b-sweep-2gpu", (1.7085, 4082.87), (0.1446, 0.8596)),
        ("rinna-3.6b-sweep-1gpu", (1.5834, 3138.9), (0.1488, 0.4218)),
    ],
)
def test_the_sweeps_rows_lie_on_the_published_lines(
    preset: str, memory: tuple[float, float], time: tuple[float, float]
) -> None:
    rows = references_of(preset)
    assert len(rows) == 9
    for what, per, expected in (("used_mib", _tokens, memory), ("seconds", _output, time)):
        line = linear_regression([per(row) for row in rows], [getattr(row, what) for row in rows])
        (law,) = (law for law in laws() if law.preset == preset and law.what == what)
        assert (law.slope, law.intercept) == expected
        assert line.slope == pytest.approx(law.slope, abs=6e-5)
        assert line.intercept == pytest.approx(law.intercept, abs=0.05 if what == "used_mib" else 6e-5)


def test_answers_that_stopped_early_say_how_much_was_asked() -> None:
    early = [row for row in references() if row.asked_tokens]
    assert {(row.machine.gpus, row.input_tokens, row.output_tokens) for row in early} == {(1, 100, 174), (2, 500, 102)}
    assert all(row.asked_tokens == 256 for row in early)
    assert {round(row.tokens_per_second or 0, 1) for row in early} == {6.9, 6.6}


def _tokens(row: Reference) -> float:
    return (row.input_tokens or 0) + (row.output_tokens or 0)


def _output(row: Reference) -> float:
    return row.output_tokens or 0
