"""Bytes of a data file to text, exactly: byte order marks stripped, encodings recognised and said."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from llmtui.core.errors import DataError


def read_bytes(path: Path) -> bytes:
    """The file's bytes, unpacked when gzipped (by content, not by name).

    Raises:
        DataError: it cannot be read or unpacked.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"the file cannot be read: {reason}", place=path.name, hint="check the file") from error


def decode_text(raw: bytes, name: str) -> tuple[str, str | None]:
    """The text and a sentence when the encoding was not UTF-8.

    Raises:
        DataError: no encoding fits; names the byte and its line.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode("utf-16"), f"{name} is UTF-16"
        except UnicodeDecodeError as error:
            raise _undecodable(raw, name, error, "UTF-16") from error
    try:
        return raw.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        first = error
    try:
        return raw.decode("cp932"), f"{name} is not UTF-8; it was read as CP932 (Shift-JIS)"
    except UnicodeDecodeError:
        raise _undecodable(raw, name, first, "UTF-8 nor CP932") from first


def _undecodable(raw: bytes, name: str, error: UnicodeDecodeError, tried: str) -> DataError:
    line = raw[: error.start].count(b"\n") + 1
    return DataError(
        f"byte {error.start} (0x{raw[error.start]:02x}) is neither {tried}" if "nor" in tried
        else f"byte {error.start} is not {tried}",
        place=f"{name}:{line}", hint="save the file as UTF-8",
    )  # fmt: skip
