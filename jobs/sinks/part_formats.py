"""How rows become the bytes of a part file: JSON lines or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

LINES, PARQUET = "json", "parquet"
CONTENT_TYPES = {LINES: "application/x-ndjson", PARQUET: "application/vnd.apache.parquet"}
# Rows of one group in memory; readers take groups one by one.
ROW_GROUP_BYTES = 64 * 1024 * 1024


class Bytes(Protocol):
    """What takes bytes."""

    def write(self, data: bytes) -> None:
        """Adds bytes."""


class JsonLines:
    """One JSON object a line.

    Args:
        target: where the bytes go.
    """

    def __init__(self, target: Bytes) -> None:
        self._target = target

    def add(self, line: str) -> None:
        """Writes a row."""
        self._target.write(line.encode() + b"\n")

    def finish(self) -> None:
        """A file of lines needs no end."""


class Parquet:
    """Parquet in groups of rows. Every column may be null there: whether it may in the app can change while a file is open.

    Args:
        target: where the bytes go.
        group_bytes: a group is written once its rows take this much memory, `ROW_GROUP_BYTES` at most.
    """

    def __init__(self, target: Bytes, group_bytes: int = ROW_GROUP_BYTES) -> None:
        self._file = _FileLike(target.write)
        self._group_bytes = min(group_bytes, ROW_GROUP_BYTES)
        self._rows: list[pa.RecordBatch] = []
        self._bytes = 0
        self._writer: Any = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Writes rows."""
        import pyarrow as pa

        # Chunks of older versions say which columns are never null.
        self._rows.append(rows.cast(pa.schema([_nullable(field) for field in rows.schema])))
        self._bytes += rows.nbytes
        if self._bytes >= self._group_bytes:
            self._flush()

    def finish(self) -> None:
        """Writes what is left, and the file's end."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._rows, self._bytes = [], 0


def _nullable(field: pa.Field) -> pa.Field:
    """A field that may be null, and all that it is made of too."""
    import pyarrow as pa

    of = field.type
    if pa.types.is_struct(of):
        of = pa.struct([_nullable(of.field(place)) for place in range(of.num_fields)])
    elif pa.types.is_map(of):
        of = pa.map_(of.key_field, _nullable(of.item_field))
    elif pa.types.is_list(of):
        of = pa.list_(_nullable(of.value_field))
    return pa.field(field.name, of, nullable=True, metadata=field.metadata)


class _FileLike:
    """A file to write, as far as pyarrow needs one."""

    closed = False

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._place = 0

    def write(self, data: bytes) -> int:
        self._write(bytes(data))
        self._place += len(data)
        return len(data)

    def tell(self) -> int:
        return self._place

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
