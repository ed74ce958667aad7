"""Event files: whole lines, healed tails, read only once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmtui.core.runs import events
from llmtui.core.runs.log import EventReader, EventWriter


def step(number: int) -> events.Step:
    return events.Step(step=number, epoch=number / 10, loss=1 / number, learning_rate=3e-4, tokens=number)


def written(path: Path, count: int) -> None:
    with EventWriter(path) as writer:
        for number in range(1, count + 1):
            writer.write(step(number))


def test_lines_come_back_in_order_with_numbers_and_times(tmp_path: Path) -> None:
    written(tmp_path / "e", 3)
    read = list(EventReader(tmp_path / "e").read_new())
    assert [e.n for e in read] == [0, 1, 2]
    assert all(e.t > 1e9 and e.m > 0 for e in read)
    assert read[0].m <= read[1].m <= read[2].m


def test_a_reader_gives_each_event_once(tmp_path: Path) -> None:
    reader = EventReader(tmp_path / "e")
    assert list(reader.read_new()) == []
    written(tmp_path / "e", 2)
    assert len(list(reader.read_new())) == 2
    assert list(reader.read_new()) == []


@pytest.mark.parametrize(
    "tail",
    [b'{"type":"step","n":9,"st', b"\x00" * 4096, b'{"type":"step"\x00\x00\n', b"\xff\xfe half", b"\n\n\x00"],
    ids=["torn", "nul-tail", "nul-inside-line", "not-utf8", "blank-and-nul"],
)
def test_a_torn_tail_is_healed_before_the_next_append(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "e"
    written(path, 2)
    with path.open("ab") as file:
        file.write(tail)
    with EventWriter(path) as writer:
        writer.write(step(3))
    reader = EventReader(path)
    read = [e for e in reader.read_new() if isinstance(e, events.Step)]
    assert [e.step for e in read] == [1, 2, 3]
    assert [e.n for e in read] == [0, 1, 2]


def test_a_torn_tail_is_not_yet_written_to_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "e"
    written(path, 1)
    whole = events.encode(step(2))
    with path.open("ab") as file:
        file.write(whole[:20])
    reader = EventReader(path)
    assert len(list(reader.read_new())) == 1
    with path.open("ab") as file:
        file.write(whole[20:])
    assert [e.step for e in reader.read_new() if isinstance(e, events.Step)] == [2]


def test_unknown_types_are_ignored_and_damage_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_bytes(b'{"type":"from_the_future","x":1}\n{"type":"step",broken\n' + events.encode(step(1)))
    reader = EventReader(path)
    assert len(list(reader.read_new())) == 1
    assert reader.damaged_lines == 1


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_bytes(b'{"type":"exit","outcome":"finished","step":3,"new_field":[1]}\n')
    (event,) = EventReader(path).read_new()
    assert isinstance(event, events.Exit)
    assert event.step == 3


def test_text_with_every_line_separator_stays_one_event(tmp_path: Path) -> None:
    text = "a\r\nb\u2028c\u2029d\x85e\x0bf\x1cg\x00h"
    with EventWriter(tmp_path / "e") as writer:
        writer.write(events.Sample(step=1, index=0, prompt=text, text=text, tokens=1, seconds=0.1))
    (event,) = EventReader(tmp_path / "e").read_new()
    assert isinstance(event, events.Sample)
    assert event.text == text


def test_a_line_longer_than_a_chunk_is_read(tmp_path: Path) -> None:
    with EventWriter(tmp_path / "e") as writer:
        writer.write(events.WarningEvent(code="long", text="x" * 3_000_000))
        writer.write(step(1))
    read = list(EventReader(tmp_path / "e").read_new())
    assert len(read) == 2


def test_a_full_disk_tears_no_line(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from llmtui.core.runs.log import EventWriter; from llmtui.core.runs import events\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "writer = EventWriter(Path(sys.argv[1]))\n"
        "writer.write(events.WarningEvent(code='a', text='first'))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "failures = 0\n"
        "for _ in range(5):\n"
        "    try: writer.write(events.WarningEvent(code='b', text='x' * 100))\n"
        "    except OSError: failures += 1\n"
        "assert failures >= 3, failures\n"
    )
    path = tmp_path / "e"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    with EventWriter(path) as writer:
        writer.write(step(1))
    reader = EventReader(path)
    read = list(reader.read_new())
    assert reader.damaged_lines == 0
    assert isinstance(read[-1], events.Step)


def test_a_writer_killed_in_a_tight_loop_loses_at_most_its_last_line(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from llmtui.core.runs.log import EventWriter; from llmtui.core.runs import events\n"
        "writer = EventWriter(Path(sys.argv[1]))\n"
        "while True: writer.write(events.WarningEvent(code='x', text='y' * 500))\n"
    )
    path = tmp_path / "e"
    for _ in range(5):
        before = path.stat().st_size if path.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", script, str(path)])
        deadline = time.monotonic() + 20
        while (path.stat().st_size if path.exists() else 0) <= before + 20_000:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        process.wait()
    EventWriter(path).close()
    reader = EventReader(path)
    numbers = [e.n for e in reader.read_new()]
    assert numbers == list(range(len(numbers)))
    assert reader.damaged_lines == 0


def test_a_hundred_thousand_steps_are_read_quickly(tmp_path: Path) -> None:
    path = tmp_path / "e"
    line = events.encode(step(1))
    path.write_bytes(line * 100_000)
    begin = time.monotonic()
    assert sum(1 for _ in EventReader(path).read_new()) == 100_000
    assert time.monotonic() - begin < 3  # 0.15 s on an idle machine; the limit is for a loaded one


def test_reading_in_small_pieces_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_bytes(b"".join(events.encode(step(n)) for n in range(1, 30_001)))
    reader, seen = EventReader(path), 0
    while True:
        new = sum(1 for _ in reader.read_new(limit_bytes=100_000))
        if not new:
            break
        seen += new
    assert seen == 30_000
    assert reader.offset == path.stat().st_size
