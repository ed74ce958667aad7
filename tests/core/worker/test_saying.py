"""output.log: a line for what a person wants to know, and none of it can end a run."""

from __future__ import annotations

import subprocess
import sys

from llmtui.core.runs import events as ev
from llmtui.core.worker.saying import line


def test_events_people_wait_for_have_a_line_and_frequent_ones_none() -> None:
    assert line(ev.Eval(step=3, loss=1.5, accuracy=None, rows=4, seconds=0.24)) == (
        "eval at step 3 · loss 1.5000 · accuracy – · 4 rows in 0.2 s"
    )
    assert line(ev.ErrorEvent(kind="x", message="the disk is full", hint="free space")) == (
        "error · the disk is full — free space"
    )
    assert line(ev.PhaseEvent(name="training")) is None
    assert line(ev.Step(step=1, epoch=0.1, loss=1.0, learning_rate=0.1)) is None


def test_text_of_the_model_stays_on_its_line_without_escape_codes() -> None:
    sample = ev.Sample(step=0, index=0, prompt="a\nb", text="\x1b]52;c;x\x07\nstep 9", tokens=1, seconds=0.1)
    said = line(sample) or ""
    assert not any(ord(c) < 32 or c == "\x7f" for c in said)


def test_a_full_disk_under_output_log_ends_nothing() -> None:
    code = "from llmtui.core.worker.saying import say\nfor i in range(3): say('x' * 100000)\nraise SystemExit(7)"
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode in (7, 120), done.stderr.decode()  # 120: the interpreter's own flush at exit
    assert b"Traceback" not in done.stderr.split(b"Exception ignored")[0]
