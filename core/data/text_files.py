"""Bytes of a data file to text, exactly and piece by piece: gzip by content, byte order marks stripped."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TextIO, cast

from llmtui.core.data.encodings import legacy_encoding, marked_encoding, spoken, utf16_without_mark
from llmtui.core.errors import DataError

_CHUNK: Final = 1 << 18
_WIDE: Final = re.compile("[\u0800-\uffff]")
_GZIP: Final = b"\x1f\x8b"
_FOREIGN: Final = (
    (b"PK\x03\x04", "a ZIP archive or an Excel file", "save it as CSV (UTF-8), or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file", "save it as CSV (UTF-8)"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it, or compress it with gzip"),
    (b"BZh", "compressed with bzip2", "unpack it, or compress it with gzip"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it, or compress it with gzip"),
    (b"ARROW1", "an Arrow file", "save it as Parquet"),
    (b"SQLite format 3", "an SQLite database", "export its table as CSV"),
    (b"%PDF-", "a PDF", "save its text as .txt"),
)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked when gzipped (by content, not by name).

    Raises:
        DataError: it cannot be read or unpacked; also while it is read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"the file cannot be read: {reason}", place=path.name, hint="check the file") from error


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read(count)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file whose encoding is known and fits all of it."""

    path: Path
    encoding: str
    note: str | None
    """A sentence when the encoding is not UTF-8."""
    line_end: str = "\n"

    @property
    def name(self) -> str:
        """The name that places use."""
        return self.path.name

    @contextmanager
    def open(self, newline: str | None = None) -> Iterator[TextIO]:
        """The text with what ends its lines: `line_end` alone, or with `newline=""` every kind of line end."""
        newline = self.line_end if newline is None else newline
        with open_bytes(self.path) as raw, io.TextIOWrapper(raw, self.encoding, newline=newline) as text:
            yield text


def text_file(path: Path) -> TextFile:
    """Find a file's encoding by reading all of it, and what its lines end with.

    A file without any newline but with carriage returns is one of an old Mac.

    Raises:
        DataError: it is no text, or no encoding fits; names the byte and its line.
    """
    head = first_bytes(path, _CHUNK)
    for magic, what, cure in _FOREIGN:
        if head.startswith(magic):
            raise DataError(f"the file is {what}", place=path.name, hint=cure)
    encoding, note = _encoding(path, head)
    begin = head.decode(encoding, "ignore")
    return TextFile(path, encoding, note, "\r" if "\r" in begin and "\n" not in begin else "\n")


def _encoding(path: Path, head: bytes) -> tuple[str, str | None]:
    """The encoding that fits the whole file, and a sentence when it is not UTF-8."""
    known = marked_encoding(head) or utf16_without_mark(head)
    if known is not None:
        if (wrong := _first_wrong(path, known)) is not None:
            raise _undecodable(path.name, wrong, spoken(known))
        marked = not known.endswith(("-le", "-be"))
        said = None if known == "utf-8-sig" else f"{path.name} is {spoken(known)}"
        return known, said if marked or said is None else f"{said} without a byte order mark"
    wrong = _first_wrong(path, "utf-8")
    if wrong is None:
        return "utf-8", None
    sample = wrong.line_bytes + _after(path, wrong.line_start + len(wrong.line_bytes))
    guess = None if wrong.after_wide else legacy_encoding(sample)
    if guess is None:
        raise _undecodable(path.name, wrong, "UTF-8")
    if _first_wrong(path, guess) is not None:
        raise _undecodable(path.name, wrong, "UTF-8", spoken(guess))
    return guess, f"{path.name} is not UTF-8; it was read as {spoken(guess)}"


def decode_text(raw: bytes, name: str) -> tuple[str, str | None]:
    """The text of a small file and a sentence when the encoding was not UTF-8.

    Raises:
        DataError: no encoding fits; names the byte and its line.
    """
    known = marked_encoding(raw) or utf16_without_mark(raw) or "utf-8"
    wrong = _wrong_in(io.BytesIO(raw), known)
    if wrong is None:
        said = None if known.startswith("utf-8") else f"{name} is {spoken(known)}"
        return raw.decode(known), said
    guess = legacy_encoding(raw[wrong.line_start :]) if known == "utf-8" and not wrong.after_wide else None
    if guess is None or _wrong_in(io.BytesIO(raw), guess) is not None:
        raise _undecodable(name, wrong, spoken(known), spoken(guess) if guess else None)
    return raw.decode(guess), f"{name} is not UTF-8; it was read as {spoken(guess)}"


@dataclass(frozen=True, slots=True)
class _Wrong:
    """The first byte that an encoding cannot read."""

    offset: int
    line: int
    byte: int
    line_start: int
    line_bytes: bytes
    after_wide: bool
    """Characters of three bytes stand in earlier lines: the file is what it was taken for, with a wrong byte."""


def _first_wrong(path: Path, encoding: str) -> _Wrong | None:
    with open_bytes(path) as file:
        return _wrong_in(file, encoding)


def _wrong_in(file: IO[bytes], encoding: str) -> _Wrong | None:
    decoder = codecs.getincrementaldecoder(encoding)()
    offset, line, line_start, line_bytes, wide = 0, 1, 0, b"", False
    while True:
        chunk = file.read(_CHUNK)
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            begin = offset + len(chunk) - len(error.object)  # the decoder kept bytes of the chunk before
            at = begin + error.start
            before = error.object[: error.start].decode(encoding, "ignore")
            newline = error.object.rfind(b"\n", 0, error.start)
            if newline >= 0:
                line_start, line_bytes = begin + newline + 1, error.object[newline + 1 :]
                wide = wide or _WIDE.search(error.object[:newline].decode(encoding, "ignore")) is not None
            else:
                line_bytes = line_bytes[: begin - line_start] + error.object
            return _Wrong(at, line + before.count("\n"), error.object[error.start], line_start, line_bytes, wide)
        if not chunk:
            return None
        line += text.count("\n")
        wide = wide or _WIDE.search(text[: text.rfind("\n") + 1]) is not None
        newline = chunk.rfind(b"\n")
        if newline >= 0:
            line_start, line_bytes = offset + newline + 1, chunk[newline + 1 :]
        elif len(line_bytes) < _CHUNK:
            line_bytes += chunk
        else:
            line_start, line_bytes = offset, chunk  # one line of many megabytes
        offset += len(chunk)


def _after(path: Path, offset: int) -> bytes:
    with open_bytes(path) as file:
        file.seek(offset)
        return file.read(_CHUNK)


def _undecodable(name: str, wrong: _Wrong, *tried: str | None) -> DataError:
    words = [word for word in tried if word]
    what = f"neither {' nor '.join(words)}" if len(words) > 1 else f"not {words[0]}"
    return DataError(
        f"byte {wrong.offset} (0x{wrong.byte:02x}) is {what}", place=f"{name}:{wrong.line}",
        hint="save the file as UTF-8",
    )  # fmt: skip
