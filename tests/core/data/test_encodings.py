"""Every encoding people save their data in is read as the text it is, and said when it is not UTF-8."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmtui.core.data.encodings import legacy_encoding
from llmtui.core.data.text_files import text_file
from tests.core.data.readings import read, refused, write

JAPANESE = 'instruction,output\n"挨拶して","こんにちは\r\nソ表能"\n'
ROW = '{"instruction":"表示","output":"ソ"}\n'
SAID = {
    "utf-8": "", "utf-8-sig": "", "cp932": "CP932", "euc_jp": "EUC-JP", "utf-16": "UTF-16", "utf-32": "UTF-32",
    "utf-16-le": "UTF-16 (little endian) without a byte order mark", "iso2022_jp": "ISO-2022-JP",
    "utf-16-be": "UTF-16 (big endian) without a byte order mark",
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("encoding", SAID)
def test_japanese_in_every_encoding(tmp_path: Path, encoding: str, packed: bool) -> None:
    for name, text, expected in (
        ("a.csv", JAPANESE, ("挨拶して", "こんにちは\r\nソ表能")),
        ("a.jsonl", ROW, ("表示", "ソ")),
        ("a.json", f"[{ROW}]", ("表示", "ソ")),
    ):
        raw = text.encode(encoding)
        found = read(write(tmp_path, name, gzip.compress(raw) if packed else raw))
        assert found.pairs == [expected]
        assert SAID[encoding] in "".join(found.notes)
        assert bool(found.notes) == bool(SAID[encoding])


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "ﾊﾝｶｸとカナ"), ("cp932", "ｶﾅﾓｼﾞ"), ("cp932", "会社概要"), ("cp932", "学習"), ("cp932", "テスト①②"),
        ("euc_jp", "会社の概要"), ("euc_jp", "テスト"), ("cp1252", "für die Größe"), ("cp1252", "it’s a “naïve” café"),
        ("gb18030", "我很好，谢谢你的问题"), ("cp949", "네 좋아요 감사합니다"), ("utf-16-le", "こんにちは"),
    ],
)  # fmt: skip
def test_neighbours_are_told_apart(tmp_path: Path, encoding: str, text: str) -> None:
    found = read(write(tmp_path, "a.txt", text.encode(encoding)))
    assert found.texts == [text]
    assert "it was read as" in found.notes[0]


def test_the_first_bytes_do_not_decide(tmp_path: Path) -> None:
    """Header and a megabyte of rows in ASCII, then Japanese."""
    path = write(tmp_path, "a.csv", b"instruction,output\n" + b"a,b\n" * 270_000 + "挨拶,こんにちは\n".encode("cp932"))
    assert read(path).pairs[-1] == ("挨拶", "こんにちは")


def test_utf8_with_a_broken_character_names_byte_and_line(tmp_path: Path) -> None:
    raw = '{"instruction":"質問","output":"答え"}\n'.encode() * 3 + b'{"instruction":"\xe3\x81","output":"x"}\n'
    text = refused(write(tmp_path, "a.jsonl", raw))
    assert "a.jsonl:4" in text
    broken = raw.index(b'\xe3\x81"')
    assert f"byte {broken} (0xe3) is not UTF-8" in text


def test_the_line_is_right_far_into_a_file(tmp_path: Path) -> None:
    raw = "質問\n".encode() * 400_000 + b"\xff\xff\n"
    with pytest.raises(Exception, match=r"a\.txt:400001"):
        text_file(write(tmp_path, "a.txt", raw))


@pytest.mark.parametrize(
    ("raw", "what"),
    [(b"PK\x03\x04....", "Excel"), (b"\x28\xb5\x2f\xfd...", "zstd"), (b"BZh91AY", "bzip2"), (b"%PDF-1.4", "PDF"),
     (b"\x1f\x8bgarbage", "cannot be read"), (gzip.compress(ROW.encode())[:-6], "cannot be read"),
     (b"\xff\xfea\x00\x00\xd8", "not UTF-16"), (b"instruction,output\na,\xff\xfe\x00b\n", "a.csv:2")],
)  # fmt: skip
def test_what_is_no_text_says_what_it_is(tmp_path: Path, raw: bytes, what: str) -> None:
    assert what in refused(write(tmp_path, "a.csv", raw))


def test_gzip_in_several_members_and_under_another_name(tmp_path: Path) -> None:
    packed = gzip.compress(ROW.encode()) + gzip.compress(ROW.encode())
    assert len(read(write(tmp_path, "a.jsonl.gz", packed)).pairs) == 2
    assert len(read(write(tmp_path, "a.jsonl", packed)).pairs) == 2


def test_zero_characters_of_a_text_do_not_make_it_utf16(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.txt", "a\0b\nc\0d\n")).texts == ["a\0b", "c\0d"]


@given(st.text("あいうえおかきくけこサシスセソタチツテト日本語表示能力", min_size=4, max_size=30))
def test_any_japanese_sentence_is_recognised(text: str) -> None:
    """With a kana among its characters, as every sentence has."""
    for encoding in ("cp932", "euc_jp"):
        assert legacy_encoding(f"これは{text}です。".encode(encoding)) == encoding
