"""Exact match in words, from an event as it is and from its JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llmtui.core.runs import events as ev
from llmtui.core.runs.exporting import export_text
from llmtui.core.runs.facts import read_summary
from llmtui.core.runs.label_words import exact_match_words, share
from llmtui.core.runs.log import EventWriter
from llmtui.core.runs.summary_text import summary_text
from tests.core.runs.whole_run import make_run

SCORES = {"neg": ev.LabelScore(rows=1200, exact_match=0.9), "pos": ev.LabelScore(rows=10, exact_match=1.0)}


def test_it_names_every_label_with_its_rows() -> None:
    wanted = "exact match 90.1 % (neg 90.0 % of 1,200, pos 100.0 % of 10)"
    assert exact_match_words(0.9008, SCORES) == wanted
    assert exact_match_words(0.9008, msgspec.to_builtins(SCORES)) == wanted


def test_a_share_is_whole_only_when_it_is() -> None:
    assert [share(value) for value in (None, 0.0, 0.9996, 1.0)] == ["–", "0.0 %", "99.9 %", "100.0 %"]


def test_without_labels_nothing_is_said_and_many_are_cut_short() -> None:
    assert exact_match_words(None, {}) == ""
    many = {str(n): ev.LabelScore(rows=1, exact_match=0.0) for n in range(40)}
    said = exact_match_words(0.0, many)
    assert said.endswith("and 28 labels more)")


def test_an_event_keeps_them_and_older_lines_have_none() -> None:
    event = ev.Eval(step=3, loss=1.0, exact_match=0.5, by_label=SCORES)
    assert ev.decode(ev.encode(event)) == event
    old = ev.decode(b'{"type":"eval","step":3,"loss":1.0}')
    assert isinstance(old, ev.Eval)
    assert (old.exact_match, old.by_label) == (None, {})
    assert b"by_label" not in ev.encode(ev.Eval(step=3, loss=1.0))


def test_the_summary_has_them(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with EventWriter(run.events) as events:
        events.write(ev.Eval(step=12, loss=1.0, exact_match=0.5, by_label={**SCORES, "a|b": SCORES["pos"]}))
    markdown = export_text(run, "md")
    assert "| step | loss | perplexity | token accuracy | exact match | rows |" in markdown
    assert "| neg | 90.0 % | 1,200 |" in markdown
    assert r"| a\|b | 100.0 % | 10 |" in markdown
    assert "exact match 50.0 % (neg 90.0 % of 1,200" in summary_text(read_summary(run))
    assert read_summary(run).eval_exact_match == 0.5
