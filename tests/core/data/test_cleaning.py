"""Cleaning: nothing unless asked, steps in one order, each counted; copies are found whatever the place."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core.data.cleaning import DUPLICATE, EMPTY, LONG, SHORT, Cleaner, SeenRows
from llmtui.core.data.content import content_hash
from llmtui.core.data.rows import Example, Turn
from llmtui.core.preset.schema import CleanSection


def row(instruction: str = "ask", output: str = "say", **more: str) -> Example:
    return Example("a.jsonl:1", instruction=instruction, output=output, **more)


@given(st.text(min_size=1), st.text(min_size=1))
def test_nothing_is_changed_unless_asked(instruction: str, output: str) -> None:
    cleaner = Cleaner(CleanSection())
    example = row(instruction, output)
    assert cleaner.clean(example) is example
    assert cleaner.counts == {}
    assert cleaner.dropped == {}


@pytest.mark.parametrize(
    ("section", "before", "after"),
    [
        (CleanSection(nfkc=True), "ﾊﾝｶｸ ＡＢＣ １２ ﬁ ㍿ が", "ハンカク ABC 12 fi 株式会社 が"),
        (CleanSection(lower=True), "ÀÉ ΑΣ ПРИВЕТ", "àé ας привет"),
        (
            CleanSection(control_characters=True),
            "a\x00b\x1b[31m\x7f\x85c\td\r\ne👨\u200d👩",
            "ab[31mc\td\r\ne👨\u200d👩",
        ),
        (CleanSection(symbols="■★^-]"), "■a^b-c]★[", "abc["),
        (CleanSection(nfkc=True, symbols="!"), "すごい！", "すごい"),
        (CleanSection(nfkc=True, lower=True), "ＡＢ", "ab"),
    ],
    ids=["nfkc", "lower", "controls", "symbols", "folded before symbols", "folded before lower"],
)
def test_a_step_changes_every_text_of_a_row(section: CleanSection, before: str, after: str) -> None:
    shapes = [
        (row(before, before, input=before), row(after, after, input=after)),
        (Example("p", text=before), Example("p", text=after)),
        (
            Example("p", turns=(Turn("user", before), Turn("assistant", before))),
            Example("p", turns=(Turn("user", after), Turn("assistant", after))),
        ),
    ]
    for given_, wanted in shapes:
        assert Cleaner(section).clean(given_) == wanted


def test_a_label_is_a_name_and_stays() -> None:
    cleaned = Cleaner(CleanSection(lower=True, symbols="P")).clean(Example("p", instruction="GOOD", label="POS"))
    assert cleaned == Example("p", instruction="good", label="POS")


def test_every_step_counts_the_rows_it_changed() -> None:
    cleaner = Cleaner(CleanSection(nfkc=True, lower=True, control_characters=True, symbols="x"))
    for text in ("Ａ", "B", "c", "c\x00", "x1"):
        cleaner.clean(row(text, "1"))
    assert cleaner.counts == {"nfkc": 1, "lower": 2, "control_characters": 1, "symbols": 1}


def test_rows_are_dropped_by_reason() -> None:
    cleaner = Cleaner(CleanSection(symbols="■", min_length=4, max_length=6, duplicates=True))
    said = [cleaner.clean(row(asked, answer)) for asked, answer in
            [("■", "1234"), ("ab", "■"), ("ab", "1"), ("abcd", "123"), ("abc", "123"), ("a■bc", "123"), ("ab", "12")]]  # fmt: skip
    assert said[:4] == [EMPTY, EMPTY, SHORT, LONG]
    assert said[4] == row("abc", "123")
    assert said[5] == DUPLICATE
    assert cleaner.dropped == {EMPTY: 2, SHORT: 1, LONG: 1, DUPLICATE: 1}


def test_lengths_are_characters_of_the_whole_row() -> None:
    cleaner = Cleaner(CleanSection(min_length=5, max_length=5))
    assert isinstance(cleaner.clean(row("日本", "語", input="😀が")), Example)
    assert cleaner.clean(row("日本", "語", input="😀")) == SHORT


def test_copies_are_equal_in_every_text_and_nothing_else() -> None:
    turns = (Turn("user", "a"), Turn("assistant", "b"))
    different = [
        row("a", "b"), row("ab", ""), row("a", "", input="b"), row("", "b", input="a"), Example("p", text="ab"),
        Example("p", turns=turns), Example("p", turns=(Turn("system", "a"), Turn("assistant", "b"))),
        Example("p", instruction="a", label="b"), Example("p", text="ab", label=""),
    ]  # fmt: skip
    assert len({content_hash(example) for example in different}) == len(different)
    assert content_hash(row("a", "b")) == content_hash(Example("elsewhere:9", instruction="a", output="b"))


def test_seen_rows_is_a_set_of_hashes() -> None:
    draw = random.Random(1)
    hashes = [draw.randbytes(16) for _ in range(5000)]
    hashes += [bytes(16), bytes(8) + b"\x01" * 8, hashes[0][:8] + bytes(8)]
    seen, plain = SeenRows(), set[bytes]()
    for content in [*hashes, *draw.sample(hashes, 3000)]:
        assert seen.add(content) == (content not in plain)
        plain.add(content)
    assert len(seen) == len(plain)
