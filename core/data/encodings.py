"""Which encoding a text file has: by its byte order mark, by where its zero bytes stand, by what its bytes read as."""

from __future__ import annotations

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_SPOKEN: Final = {
    "cp932": "CP932 (Shift-JIS)", "euc_jp": "EUC-JP", "utf-8-sig": "UTF-8", "utf-16-le": "UTF-16 (little endian)",
    "utf-16-be": "UTF-16 (big endian)", "cp1252": "Windows-1252 (Western European)", "gb18030": "GB18030 (Chinese)",
    "big5": "Big5 (Chinese)", "cp949": "CP949 (Korean)", "cp1251": "Windows-1251 (Cyrillic)",
    "iso2022_jp": "ISO-2022-JP (JIS)",
}  # fmt: skip
_LAST_RESORT: Final = ("cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1252", "cp1251", "cp1250", "iso2022_jp")
_KANA: Final = re.compile("[\u3041-\u30fe]")
_HALF_WIDTH: Final = re.compile("[\uff61-\uff9f]")
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")
_JIS: Final = re.compile(rb"\x1b\$[@B][\x21-\x7e]+\x1b\([BJ]")
_BESIDE_LETTERS: Final = re.compile(
    rb"(?<=[A-Za-z])[\x80-\xff]{1,2}(?![\x80-\xff])|(?<![\x80-\xff])[\x80-\xff]{1,2}(?=[A-Za-z])"
)
_RUN: Final = re.compile(rb"[\x80-\xff]+")
_WESTERN: Final = re.compile(rb"[\xc0-\xff\x91-\x94]")  # letters and quotes of Windows-1252
_UNUSED: Final = re.compile("[\uf8f0-\uf8f3\x80]")  # what cp932 makes of bytes that no Japanese text has
_SAMPLE: Final = 1 << 16


def spoken(encoding: str) -> str:
    """What people call an encoding."""
    return _SPOKEN.get(encoding, encoding.upper().replace("_", "-"))


def marked_encoding(head: bytes) -> str | None:
    """The encoding a byte order mark names, or the escape codes of JIS."""
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    return marked or ("iso2022_jp" if _JIS.search(head) and head.isascii() else None)


def utf16_without_mark(head: bytes) -> str | None:
    """UTF-16 by the zero bytes of its ASCII characters: at odd places little endian, at even places big endian."""
    zeros = head.count(0)
    if not zeros:
        return None
    units = len(head) // 2
    odd = head[1::2].count(0)
    even = zeros - odd
    for encoding, these, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if these > 4 * others and these * 100 >= units:
            try:
                text = codecs.getincrementaldecoder(encoding)().decode(head)
            except UnicodeDecodeError:
                return None
            # Text with a few zero characters of its own would turn into rare ideographs.
            return encoding if sum(map(_common, text[:4096])) * 10 >= 9 * len(text[:4096]) else None
    return None


def _common(character: str) -> bool:
    code = ord(character)
    return code in (9, 10, 13) or 0x20 <= code < 0x250 or 0x370 <= code < 0x600 or 0x2000 <= code < 0x2700 or (
        0x3000 <= code < 0xA000 or 0xAC00 <= code < 0xD7A4 or 0xD800 <= code < 0xE000 or code >= 0xFF00
    )  # fmt: skip


def legacy_encoding(sample: bytes) -> str | None:
    """The likeliest encoding of bytes that are not UTF-8; None when they are UTF-8 with a few wrong bytes.

    Args:
        sample: from the beginning of the line with the first wrong byte.
    """
    sample = sample[:_SAMPLE]
    readable = sample.decode("utf-8", "replace")
    wrong = readable.count("\ufffd")
    if len(_NOT_ASCII.findall(readable)) - wrong > 3 * wrong:
        return None
    euc, japanese = _read(sample, "euc_jp"), _read(sample, "cp932")
    if euc is not None and _share(_KANA, euc) >= 0.1 and (japanese is None or _share(_HALF_WIDTH, japanese) > 0.3):
        return "euc_jp"
    if japanese is not None and (
        _share(_KANA, japanese) >= 0.1 or (_share(_HALF_WIDTH, japanese) <= 0.5 and not _western(sample))
    ):
        return "cp932"
    if (utf16 := _bare_utf16(sample)) is not None:
        return utf16
    if _western(sample) and _read(sample, "cp1252") is not None:
        return "cp1252"
    return _measured(sample) or ("cp932" if japanese is not None else None)


def _read(sample: bytes, encoding: str) -> str | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return None
    return None if encoding == "cp932" and _UNUSED.search(text) else text


def _share(of: re.Pattern[str], text: str) -> float:
    foreign = len(_NOT_ASCII.findall(text))
    return len(of.findall(text)) / foreign if foreign else 0.0


def _western(sample: bytes) -> bool:
    """Accented letters and quotes stand alone or in twos beside ASCII letters."""
    runs = _RUN.findall(sample)
    letters = len(_WESTERN.findall(sample))
    beside = len(_BESIDE_LETTERS.findall(sample))
    return bool(runs) and beside * 10 >= 7 * len(runs) and letters * 10 >= 7 * sum(map(len, runs))


def _bare_utf16(sample: bytes) -> str | None:
    """UTF-16 without a mark and without a single ASCII character: mostly kana when read so."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = _read(sample, encoding) if len(sample) % 2 == 0 else None
        if text and _share(_KANA, text) >= 0.2 and sum(map(_common, text)) * 10 >= 9 * len(text):
            return encoding
    return None


def _measured(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=list(_LAST_RESORT)).best()
    return best.encoding if best is not None else None
