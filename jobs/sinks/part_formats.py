"""Writers of the formats of part files: JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

LINES, PARQUET = "json", "parquet"
CONTENT_TYPES = {LINES: "application/x-ndjson", PARQUET: "application/vnd.apache.parquet"}
# Rows of a row group are held in memory; readers read one group at a time.
ROW_GROUP_BYTES = 64 * 1024 * 1024


class Bytes(Protocol):
    """A target for bytes."""

    def write(self, data: bytes) -> None:
        """Appends bytes."""


class JsonLines:
    """Writer of one JSON object per line.

    Args:
        target: where the bytes are written.
    """

    def __init__(self, target: Bytes) -> None:
        self._target = target

    def add(self, line: str) -> None:
        """Writes a row."""
        self._target.write(line.encode() + b"\n")

    def finish(self) -> None:
        """Does nothing: a file of lines has no footer."""


class Parquet:
    """Writer of Parquet in row groups. Every column is nullable, since nullability in the app can change while a file is open.

    Args:
        target: where the bytes are written.
        group_bytes: a row group is written once its rows use this much memory, at most `ROW_GROUP_BYTES`.
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

        # Chunks of older versions have columns that are not nullable.
        self._rows.append(rows.cast(pa.schema([_nullable(field) for field in rows.schema])))
        self._bytes += rows.nbytes
        if self._bytes >= self._group_bytes:
            self._flush()

    def finish(self) -> None:
        """Writes the remaining rows and the footer."""
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
    """A nullable field with nullable nested fields."""
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
    """A file object with the methods that pyarrow needs to write."""

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
        """Does nothing: bytes are not buffered."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
