"""Parquet to rows, batch by batch; text stays text, other scalars are written out."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from llmtui.core.data.records import Record, Written
from llmtui.core.data.text_files import open_bytes
from llmtui.core.errors import DataError

_BATCH_ROWS: Final = 1000
MAGIC: Final = b"PAR1"


def parquet_rows(path: Path) -> Iterator[Record]:
    """The rows of a Parquet file, also of a gzipped one; memory does not grow with the file.

    Raises:
        DataError: it is no Parquet, or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with tempfile.TemporaryFile() as unpacked:
            source: Any = str(path)
            with path.open("rb") as raw:
                packed = raw.read(4) != MAGIC
            if packed:  # Parquet is read from its end, and gzip only from its beginning
                with open_bytes(path) as file:
                    shutil.copyfileobj(file, unpacked, 1 << 20)
                unpacked.seek(0)
                source = unpacked
            with pq.ParquetFile(source, pre_buffer=False, buffer_size=1 << 20) as table:
                number = 0
                for batch in table.iter_batches(_BATCH_ROWS):
                    names = batch.schema.names
                    for values in zip(*(_cells(column) for column in batch.columns), strict=True):
                        number += 1
                        yield Record(f"{path.name}, row {number}", dict(zip(names, values, strict=True)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n", 1)[0][:200]
        raise DataError(f"not readable as Parquet: {reason}", place=path.name, hint="check the file") from error


def _cells(column: Any) -> list[Any]:
    """A column's values; text in one go, which is several times faster than one by one."""
    import pyarrow as pa

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        cells: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return cells
    if pa.types.is_float32(column.type):  # as short as the type has it: 0.1, not 0.10000000149011612
        return [None if value != value else Written(value) for value in column.to_numpy(zero_copy_only=False)]
    return [scalar(value) for value in column.to_pylist()]


def scalar(value: Any) -> Any:
    """A cell of a table: text, lists and objects as they are, no number as nothing, bytes as the text they hold."""
    if value is None or isinstance(value, str | list | dict | bool):
        return value
    if isinstance(value, float) and value != value:
        return None  # how a gap in a column of numbers is kept
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value
    return Written(value)
