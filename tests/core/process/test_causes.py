"""Every end has a name, a sentence and a cure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmtui.core.process.causes import Ending, name_cause, oom_kills, signal_name
from llmtui.core.process.last_words import read_last_words
from llmtui.core.runs import events as ev

TRACEBACK = """step 7
Traceback (most recent call last):
  File "/x/trainer.py", line 12, in step
    loss()
  File "/x/model [y].py", line 345, in loss
    raise it
{error}
"""
FAULT = """Fatal Python error: Segmentation fault

Thread 0x1 (most recent call first):
  File "/x/kernels.py", line 7 in launch
  File "/x/train.py", line 99 in main
"""


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "output.log"
    path.write_text("all was well\n")
    return path


def cause_of(output: Path, **known: Any) -> Any:
    return name_cause(Ending(run_id="r1", output=output, **known))


@pytest.mark.parametrize(
    ("error", "kind", "words", "again"),
    [
        ("ValueError: boom [x]", "python", "ValueError: boom [x] (model [y].py, line 345)", False),
        ("OSError: [Errno 28] No space left on device: '/x'", "disk_full", "the disk is full", False),
        ("OSError: [Errno 122] Disk quota exceeded", "disk_full", "the disk is full", False),
        ("RuntimeError: NCCL error in: x, unhandled system error", "nccl", "communication", True),
        ("torch.AcceleratorError: CUDA error: an illegal memory access", "cuda", "reported an error", True),
        ("RuntimeError: CUDA error: GPU is lost", "driver", "went away", False),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried", "gpu_memory", "the GPU's memory", False),
        ("OSError: [Errno 107] Transport endpoint is not connected", "io", "mount or connection", True),
        ("MemoryError", "host_memory", "the machine's memory", False),
    ],
)
def test_a_death_without_an_event_is_named_from_its_last_output(
    output: Path, error: str, kind: str, words: str, again: bool
) -> None:
    output.write_text(TRACEBACK.format(error=error))
    cause = cause_of(output, returncode=1)
    assert (cause.state, cause.kind, cause.exit_code, cause.again) == ("failed", kind, 1, again)
    assert words in cause.text
    assert cause.hint


def test_what_the_worker_calls_python_is_named_when_its_message_says_more(output: Path) -> None:
    plain = ev.ErrorEvent(kind="python", message="KeyError: 'x'", hint="llmtui logs")
    assert cause_of(output, returncode=1, error=plain).kind == "python"
    cuda = ev.ErrorEvent(kind="python", message="AcceleratorError: CUDA error: unspecified launch failure")
    cause = cause_of(output, returncode=1, error=cuda)
    assert (cause.kind, cause.again) == ("cuda", True)
    data = ev.ErrorEvent(kind="data", message="CUDA error in row 3", exit_code=2)
    assert cause_of(output, returncode=2, error=data).kind == "data"


def test_a_full_disk_is_named_even_when_nobody_could_write_it_down(output: Path) -> None:
    cause = cause_of(output, returncode=1, disk_free=4096)
    assert (cause.kind, cause.again) == ("disk_full", False)


def test_the_kernels_memory_killer_is_named_with_its_victims_size(output: Path) -> None:
    cause = cause_of(output, returncode=-9, oom_kills=1, peak_rss=54 << 30, ram=62 << 30)
    assert (cause.kind, cause.state, cause.again) == ("host_memory", "failed", False)
    assert "it held 54.0 GiB of 62.0" in cause.text
    assert cause_of(output, returncode=None, oom_kills=1).kind == "host_memory"
    assert cause_of(output, returncode=-11, oom_kills=1).kind == "signal"
    assert cause_of(output, returncode=-9).kind == "signal"


def test_a_crash_has_the_place_of_its_innermost_frame(output: Path) -> None:
    output.write_text(FAULT)
    cause = cause_of(output, returncode=-11)
    assert "crashed with SIGSEGV (signal 11), in kernels.py, line 7" in cause.text
    assert (cause.state, cause.exit_code, cause.again) == ("failed", 1, True)


def test_a_lost_card_is_the_cause_and_not_the_error_it_led_to(output: Path) -> None:
    error = ev.ErrorEvent(kind="python", message="CUDA error: unspecified launch failure")
    cause = cause_of(output, returncode=1, error=error, lost_cards=("GPU 2 (A6000)",))
    assert cause.kind == "driver"
    assert "GPU 2 (A6000) fell off the bus" in cause.text


def test_an_adopted_worker_that_is_gone_is_resumable(output: Path) -> None:
    cause = cause_of(output)
    assert (cause.state, cause.exit_code, cause.again) == ("interrupted", 4, True)
    assert cause.hint == "llmtui resume r1"


def test_the_workers_own_word_comes_first(output: Path) -> None:
    finished = ev.Exit(outcome="finished", step=3)
    assert cause_of(output, returncode=-9, exit_=finished, killed_for="killed").state == "finished"
    stopped = ev.Exit(outcome="stopped", step=3, cause="stopped at step 3")
    assert cause_of(output, returncode=4, exit_=stopped).text == "stopped at step 3"


def test_outside_text_is_harmless_and_bounded(output: Path) -> None:
    output.write_bytes(b"one\rtwo\x1b[31m\n\n")
    assert read_last_words(output).line == "two\\x1b[31m"
    output.write_bytes(b"x" * 1_000_000)
    assert len(read_last_words(output).line) == 300
    output.write_bytes(b"\xff\xfe\x00broken")
    assert "broken" in read_last_words(output).line
    assert read_last_words(output.with_name("missing")).line == ""


def test_counters_and_signals_have_values() -> None:
    assert oom_kills() >= 0
    assert signal_name(9) == "SIGKILL (signal 9)"
    assert signal_name(200) == "signal 200"
