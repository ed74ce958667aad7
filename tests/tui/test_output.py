"""The log's end, as a terminal would have left it, and nothing that a terminal would obey."""

from __future__ import annotations

from pathlib import Path

from llmtui.tui.output import OutputTail, lines_of


def test_a_progress_bar_is_its_last_state() -> None:
    assert lines_of("load: 0%\rload: 50%\rload: 100%\nnext\n") == ["load: 100%", "next"]
    assert lines_of("long line\rshort") == ["shortline"]  # what a terminal shows


def test_colours_and_titles_are_left_out_and_other_controls_are_written_out() -> None:
    assert lines_of("\x1b[31mred\x1b[0m \x1b]0;title\x07ok") == ["red ok"]
    assert lines_of("a\x00b\x9b31mc\x07") == ["a\\x00b\\x9b31mc\\x07"]
    assert lines_of("12\b3") == ["13"]


def test_only_the_end_of_a_large_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_text("".join(f"line {number}\n" for number in range(200_000)), encoding="utf-8")
    tail = OutputTail(path)
    assert tail.read()
    assert tail.lines[-1] == "line 199999"
    assert len(tail.lines) <= 2000
    assert tail.skipped_bytes > 1_000_000
    assert all(line.startswith("line ") for line in tail.lines)


def test_it_follows_growth_truncation_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    tail = OutputTail(path)
    assert not tail.read() and tail.lines == ()
    path.write_text("one\n", encoding="utf-8")
    assert tail.read() and tail.lines == ("one",)
    before = tail.lines
    assert not tail.read() and tail.lines is before
    with open(path, "a", encoding="utf-8") as file:
        file.write("two\n")
    assert tail.read() and tail.lines == ("one", "two")
    path.write_text("new\n", encoding="utf-8")
    assert tail.read() and tail.lines == ("new",)
    path.unlink()
    assert tail.read() and tail.lines == ()


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"\xff\xfe caf\xe9\n" + "日本語\n".encode())
    tail = OutputTail(path)
    tail.read()
    assert tail.lines[1] == "日本語"
