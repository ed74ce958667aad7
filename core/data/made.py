"""What stands beside a token store: how it came about, the size and hash of every file, what its tokens read as."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import xxhash

from llmtui.core.data.pieces import TokenPiece
from llmtui.core.errors import DataError
from llmtui.core.files import write_atomically

FORMAT: Final = 3
_META: Final = "meta.json"
_PIECES: Final = "pieces.msgpack"
_CHUNK: Final = 1 << 20


class Meta(msgspec.Struct, kw_only=True):
    """`meta.json`: written last, so that a folder without it is not a store."""

    format: int = FORMAT
    rows_read: int = 0
    train: int = 0
    """Rows that train, after splitting long ones."""
    val: int = 0
    dropped: dict[str, int] = {}
    """Rows by the reason why they are not used."""
    rows_cut: int = 0
    rows_split: int = 0
    sources: list[dict[str, Any]] = []
    """Per source: name, rows, rows dropped while reading by reason."""
    cleaned: dict[str, int] = {}
    """Rows changed by cleaning step."""
    notes: list[str] = []
    labels: list[str] | None = None
    data_hash: str = ""
    made: float = 0.0
    tokenizer: str = ""
    pad_id: int = 0
    files: dict[str, tuple[int, str]] = {}
    """Size and XXH3-64 of every other file."""
    check: str = ""
    """XXH3-64 of this file's own content without it."""


def write_meta(folder: Path, meta: Meta, pieces: Mapping[int, TokenPiece]) -> None:
    """Complete a store."""
    (folder / _PIECES).write_bytes(msgspec.msgpack.encode({number: tuple(piece) for number, piece in pieces.items()}))
    meta.files = {path.name: (path.stat().st_size, _hash(path)) for path in sorted(folder.iterdir())}
    meta.check = _check(meta)
    write_atomically(folder / _META, msgspec.json.format(msgspec.json.encode(meta), indent=1))


def read_meta(folder: Path) -> Meta:
    """How a store came about.

    Raises:
        DataError: there is none, or one of another version.
    """
    try:
        meta = msgspec.json.decode((folder / _META).read_bytes(), type=Meta)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError("the prepared data is damaged", place=str(folder), hint="delete the folder") from error
    if meta.check != _check(meta):
        raise DataError("the prepared data is damaged", place=str(folder), hint="delete the folder")
    if meta.format != FORMAT:
        raise DataError("the prepared data is of another version", place=str(folder), hint="delete the folder")
    return meta


def read_pieces(folder: Path) -> dict[int, TokenPiece]:
    """What the token ids of a store read as."""
    raw = msgspec.msgpack.decode((folder / _PIECES).read_bytes(), type=dict[int, tuple[bytes, bool]])
    return {number: TokenPiece(*piece) for number, piece in raw.items()}


def damaged(folder: Path) -> bool:
    """Whether a file is missing or is not what was written; a sound one is marked as used now."""
    try:
        meta = read_meta(folder)
        for name, (size, content) in meta.files.items():
            path = folder / name
            if path.stat().st_size != size or _hash(path) != content:
                return True
        os.utime(folder / _META)
    except (OSError, DataError):
        return True
    return False


def _check(meta: Meta) -> str:
    return str(xxhash.xxh3_64_hexdigest(msgspec.json.encode(msgspec.structs.replace(meta, check=""))))


def _hash(path: Path) -> str:
    state = xxhash.xxh3_64()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return str(state.hexdigest())
