"""The hand-over: complete, escaped, scrubbed, and the same story everywhere."""

from __future__ import annotations

import html.parser
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from llmtui.core.runs.directory import RunDirectory
from llmtui.core.runs.exporting import export_text
from llmtui.core.runs.facts import as_json, read_summary, run_row
from llmtui.core.runs.reader import read_state
from llmtui.core.runs.scrubbing import scrub
from llmtui.core.runs.summary_markdown import md
from llmtui.core.runs.summary_text import summary_text
from llmtui.core.runs.summary_use import recipes
from tests.core.runs.whole_run import GIB, make_run

GOLDEN: Final = Path(__file__).parents[2] / "data" / "summary" / "night.md"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """The run with everything in it; local time is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield make_run(tmp_path)
    monkeypatch.undo()
    time.tzset()


def test_the_summary_is_the_one_that_was_agreed_on(run: RunDirectory) -> None:
    folder = str(run.path.parent)
    written = export_text(run, "md").replace(folder, "/runs").replace(md(folder), "/runs")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(written, "utf-8")
    assert written == GOLDEN.read_text("utf-8")


def test_facts(run: RunDirectory) -> None:
    facts = read_summary(run)
    assert (facts.state, facts.exit_code, facts.step, facts.total_steps) == ("finished", 0, 12, 12)
    assert (facts.loss, facts.first_loss, facts.bad_steps) == (None, 2.875, [(12, "nan")])
    assert (facts.best_eval_step, facts.best_eval_loss, facts.eval_loss) == (8, 1.5, 1.75)
    assert facts.mean_it_per_second == 1.0 and facts.mean_tokens_per_second == 500.0
    assert facts.overall_it_per_second is not None and facts.overall_it_per_second < facts.mean_it_per_second
    assert facts.total_tokens == 12 * 500, "the steps before the resume count once"
    (card,) = facts.cards
    assert (card.index, card.peak_allocated, card.peak_reserved) == (3, 10 * GIB, 11 * GIB)
    assert (card.peak_process, card.peak_card, card.card_at_end) == (12 * GIB, 13 * GIB, 12 * GIB)
    assert facts.settings["lora"] == {"r": 8}


def test_row_show_and_export_tell_the_same(run: RunDirectory) -> None:
    row = as_json(run_row(read_state(run), run))
    whole = as_json(read_summary(run))
    assert row == {name: whole[name] for name in row}
    exported = json.loads(export_text(run, "json"))
    assert json.loads(scrub(json.dumps(whole))) == exported


def test_nothing_secret_and_nothing_alive_leaves(run: RunDirectory) -> None:
    for text in (export_text(run, "md"), export_text(run, "json"), summary_text(read_summary(run))):
        assert "hf_abcdefghijklmnop12345" not in text
        assert "\x1b" not in text
    assert "hf_…" in export_text(run, "json")


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("token hf_AbCdEfGhIj1234567890 here", "token hf_… here"),
        ("HF_TOKEN=abc llmtui run", "HF_TOKEN=… llmtui run"),
        ("sk-proj-abcdefgh12345678", "sk-…"),
        ("shelf_life hf_ and hf_short", "shelf_life hf_ and hf_short"),
    ],
)
def test_scrubbing(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed


def test_a_cell_cannot_break_its_table(run: RunDirectory) -> None:
    lines = export_text(run, "md").splitlines()
    for index, line in enumerate(lines):
        if line.startswith("| ---"):
            header = lines[index - 1].count("|")
            for row in lines[index:]:
                if not row.startswith("|"):
                    break
                assert row.replace("\\|", "").count("|") == header, row


def test_a_code_block_cannot_be_ended_from_inside(run: RunDirectory) -> None:
    run.preset.write_text("description: '```'\nmodel: {name_or_path: x}\n# ````\n")
    text = export_text(run, "md")
    block = text[text.index("## Preset, rerunnable") :]
    assert block.count("`````") == 2


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert tag != "script" and not any(name.startswith("on") for name, _ in attrs)


def test_the_files_are_written_whole_by_a_child(run: RunDirectory) -> None:
    command = [sys.executable, "-m", "llmtui.core.runs.summarize", str(run.path)]
    subprocess.run(command, check=True, capture_output=True)
    names = sorted(p.name for p in run.path.iterdir() if p.name.startswith(("summary", "loss")))
    assert names == ["loss.svg", "summary.html", "summary.json", "summary.md"]
    assert json.loads((run.path / "summary.json").read_bytes()) == json.loads(export_text(run, "json"))
    assert (run.path / "summary.md").read_text("utf-8") == export_text(run, "md")
    page = (run.path / "summary.html").read_text("utf-8")
    parser = _Tags()
    parser.feed(page)
    assert parser.tags.count("table") >= 6 and "svg" in parser.tags
    assert "<b>html</b>" not in page and "javascript:" not in page
    assert "hf_abcdefghijklmnop12345" not in page


def test_how_to_use_it_depends_on_what_there_is(run: RunDirectory) -> None:
    found = {recipe.purpose: recipe.text for recipe in recipes(read_summary(run))}
    assert "AutoPeftModelForCausalLM" in found["With transformers"]
    assert "--enable-lora" in found["With vLLM"] and "someone/llama" in found["With vLLM"]
    assert found["With llama.cpp"].startswith("llmtui merge 20231114-221320-night -o night-merged")
    assert found["To fetch it from this host"] == f"rsync -avP me@box:{run.path}/adapter/ night/"
    assert found["To train it further, as a new run"].endswith("--set training.num_train_epochs=5")


def test_a_path_with_blanks_is_quoted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "my runs; $(rm)")
    found = {recipe.purpose: recipe.text for recipe in recipes(read_summary(run))}
    assert f"'me@box:{run.path}/adapter/'" in found["To fetch it from this host"]
    assert f"'tuned={run.path}/adapter'" in found["With vLLM"]


def test_an_unfinished_run_says_how_to_go_on(run: RunDirectory) -> None:
    run.events.write_bytes(b"".join(run.events.read_bytes().splitlines(keepends=True)[:9]))
    run.monitor.unlink()
    facts = read_summary(run)
    assert (facts.state, facts.exit_code, facts.result) == ("interrupted", 4, None)
    assert [recipe.text for recipe in recipes(facts)] == [f"llmtui resume {run.id}"]
    assert "**interrupted**" in export_text(run, "md")


def test_a_run_that_never_began_is_all_unknown(run: RunDirectory) -> None:
    for path in (run.events, run.monitor, run.preset, run.attempt_file(1), run.attempt_file(2)):
        path.unlink()
    text = export_text(run, "md")
    assert "– of – steps" in text.replace("0 of –", "– of –")
    assert "None" not in text
    subprocess.run([sys.executable, "-m", "llmtui.core.runs.summarize", str(run.path)], check=True, capture_output=True)


def test_damaged_attempts_are_left_out(run: RunDirectory) -> None:
    run.attempt_file(2).write_text("attempt: [\n")
    assert [a.attempt for a in read_summary(run).attempts] == [1]
