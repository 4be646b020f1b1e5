"""Tables of PostgreSQL as sinks, written by upsert.

Guarantee: each key has the values of its last row, exactly once for any reader. A micro-batch that is run again writes the same values
for the same keys. Of several rows of a key in a micro-batch the newest by event time, or by the sink's `version`, is written
(`penstock.jobs.sinks.newest`). Each task writes in one transaction: a reader sees all of its rows or none, and may see the rows of some
tasks before those of others.

Requirements: the key is a primary key or has a unique constraint, and its columns are not null. Without a `version` the last write wins, so
a driver that was suspended and goes on after another one has taken over can overwrite newer values with those of its micro-batch; with a
`version` neither it nor a rewind can, and a late row changes nothing. Of rows with equal versions the last write wins. With `deletes` the
newest row of a micro-batch is determined by event time, not by the version, since a tombstone has none; it deletes the row of the table,
and with it the version: a suspended driver can then delete a newer row, or write a deleted one again. The server ends the transaction of a
suspended task after a minute, so that its locks do not stop others.

Cost: a shuffle by key, a connection and a transaction per task, and a task's rows in memory until they are committed. An unavailable
database is retried (`penstock.jobs.databases.retry`); after that the job fails with JOB-053, without committing the micro-batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from penstock.jobs.databases.postgres import connected, is_away, words
from penstock.jobs.databases.retry import RETRY_LIMIT_S, with_retries
from penstock.jobs.errors import DatabaseUnreachable
from penstock.jobs.sinks.errors import RowsRefused, TableDoesNotFit
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.sinks.text_rows import fields_of, last_of_each_key
from penstock.jobs.spec import PostgresSink
from penstock.jobs.spec.connection_addresses import redacted, the_url
from penstock.jobs.stream.streams import DELETED

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg.sql import Composed

_OUTCOME = "rows long, away string, refused string"
_STAGED = "penstock_rows"


@dataclass(frozen=True)
class PostgresTable:
    """Sink that writes a table.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
        url: URL of the database, credentials included.
        retry_limit_s: how long an unavailable database is retried, in seconds.
        updates: whether a row replaces the earlier one with its key.
    """

    name: str
    sink: PostgresSink
    url: str = field(repr=False)
    retry_limit_s: float = RETRY_LIMIT_S
    updates: bool = True

    @classmethod
    def of(cls, name: str, sink: PostgresSink, context: SinkContext) -> PostgresTable:
        """Builds the sink from its spec. Raises JOB-050 and JOB-051."""
        url = the_url(context.connections, sink.connection, "postgres", f"spec.sinks.{name}")
        return cls(name, sink, url, updates=context.updates)

    def check(self) -> None:
        """Checks that the table exists and its key is unique.

        Raises:
            DatabaseUnreachable: JOB-053.
            TableDoesNotFit: JOB-054.
        """
        columns, keys = self._described()
        if not columns:
            raise self._unfit(
                f"an existing table {self.sink.table} that the job's user may read and write", "create it, and grant the privileges"
            )
        wanted = [*self.sink.key, *([self.sink.version] if self.sink.version else [])]
        self._have(columns, wanted)
        if sorted(self.sink.key) not in keys:
            need = f"a primary key or unique constraint on exactly {', '.join(self.sink.key)}"
            keys_there = "; ".join(", ".join(key) for key in keys) or "none"
            raise self._unfit(f"{need}; existing: {keys_there}", f"ALTER TABLE {self.sink.table} ADD UNIQUE ({', '.join(self.sink.key)})")

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Upserts the rows of a micro-batch.

        Raises:
            DatabaseUnreachable: JOB-053.
            TableDoesNotFit: JOB-054.
            RowsRefused: JOB-055.
        """
        if not batch.rows:
            return
        fields = fields_of(rows)
        own = [name for name in fields if not (self.sink.deletes and name == DELETED)]
        if self.sink.deletes and DELETED not in fields:
            raise self._unfit(f"rows with a column {DELETED}", "set tombstones: delete at the source, or deletes: false")
        missing = [name for name in (*self.sink.key, *([self.sink.version] if self.sink.version else [])) if name not in own]
        if missing:
            raise self._unfit(f"rows with the columns {', '.join(missing)}; they have {', '.join(own)}", "select them in the app")
        newest = None if self.sink.deletes else self.sink.version
        texts = last_of_each_key(rows, fields, self.sink.key, batch.rows, updates=self.updates, version=newest)
        task = Upsert(
            self.url, self.sink.table, tuple(fields), tuple(self.sink.key), self.sink.version, self.sink.deletes, self.retry_limit_s
        )
        for outcome in texts.mapInArrow(task, _OUTCOME).collect():
            if outcome["away"] is not None:
                raise self._away(outcome["away"])
            if outcome["refused"] is not None:
                self._have(self._described()[0], own)
                fix = "divert such rows in the app before the sink, or correct the table; the job then resumes with this micro-batch"
                raise RowsRefused(path=f"sink {self.name}", given=outcome["refused"], need=f"rows accepted by {self.sink.table}", fix=fix)

    def _described(self) -> tuple[list[str], list[list[str]]]:
        """Columns of the table, and the sorted columns of each of its unique keys."""
        import psycopg

        try:
            return with_retries(lambda: _described(self.url, self.sink.table), is_away, self.retry_limit_s)
        except psycopg.Error as error:
            raise self._away(words(error)) from None

    def _have(self, columns: Sequence[str], wanted: Sequence[str]) -> None:
        missing = [name for name in wanted if name not in columns]
        if missing:
            need = f"the columns {', '.join(missing)}; it has {', '.join(columns)}"
            raise self._unfit(need, "add them, or select other columns in the app")

    def _unfit(self, need: str, fix: str) -> TableDoesNotFit:
        return TableDoesNotFit(path=f"sink {self.name}", given=f"{self.sink.table} at {redacted(self.url)}", need=need, fix=fix)

    def _away(self, given: str) -> DatabaseUnreachable:
        need = f"a response from {redacted(self.url)} within {self.retry_limit_s:g} s"
        return DatabaseUnreachable(
            path=f"sink {self.name}", given=given, need=need, fix="check the database; the job resumes where it stopped"
        )


@dataclass(frozen=True)
class Upsert:
    """Parameters of a task that writes rows; sent to the tasks.

    Args:
        url: URL of the database.
        table: name of the table, with its schema if needed.
        fields: columns of the rows.
        key: key columns.
        version: column that determines the newer of two rows.
        deletes: whether `DELETED` is one of the fields and marks the rows to delete.
        retry_limit_s: how long an unavailable database is retried, in seconds.
    """

    url: str = field(repr=False)
    table: str
    fields: tuple[str, ...]
    key: tuple[str, ...]
    version: str | None
    deletes: bool
    retry_limit_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes rows of text, and yields the outcome in the form of `_OUTCOME`."""
        import psycopg
        import pyarrow as pa

        kept = [batch for batch in batches if batch.num_rows]
        if not kept:
            return
        outcome: dict[str, Any] = {"rows": sum(batch.num_rows for batch in kept), "away": None, "refused": None}
        null = next((name for name in self.key for batch in kept if batch.column(self.fields.index(name)).null_count), None)
        if null is not None:
            outcome["refused"] = f"rows whose key {null} is null"
        else:
            try:
                with_retries(lambda: self._write(kept), is_away, self.retry_limit_s)
            except psycopg.Error as error:
                outcome["away" if is_away(error) else "refused"] = words(error)
        yield pa.RecordBatch.from_pylist([outcome], pa.schema([("rows", pa.int64()), ("away", pa.string()), ("refused", pa.string())]))

    def _write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with connected(self.url) as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.execute(self._stage())
            with cursor.copy(self._copy()) as copy:
                for batch in batches:
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        copy.write_row(row)
            cursor.execute(self._merge())
            if self.deletes:
                cursor.execute(self._delete())

    @property
    def _own(self) -> list[str]:
        return [name for name in self.fields if not (self.deletes and name == DELETED)]

    def _stage(self) -> Composed:
        """The table's own types, so that the server parses the texts as in an INSERT."""
        from psycopg.sql import SQL

        flag = SQL(", false AS {}").format(_names([DELETED])) if self.deletes else SQL("")
        text = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {}{} FROM {} WITH NO DATA"
        return SQL(text).format(_names([_STAGED]), _names(self._own), flag, _table(self.table))

    def _copy(self) -> Composed:
        from psycopg.sql import SQL

        return SQL("COPY {} ({}) FROM STDIN").format(_names([_STAGED]), _names(self.fields))

    def _merge(self) -> Composed:
        """Ordered by key, so that writers can't deadlock."""
        from psycopg.sql import SQL

        rest = [name for name in self._own if name not in self.key]
        sets = SQL(", ").join(SQL("{0} = EXCLUDED.{0}").format(_names([name])) for name in rest)
        update = SQL("UPDATE SET {}{}").format(sets, self._unless_newer("EXCLUDED")) if rest else SQL("NOTHING")
        where = SQL(" WHERE {} IS NOT TRUE").format(_names([DELETED])) if self.deletes else SQL("")
        return SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {}{} ORDER BY {} ON CONFLICT ({}) DO {}").format(
            _table(self.table), _names(self._own), _names(self._own), _names([_STAGED]), where, _names(self.key), _names(self.key), update
        )

    def _delete(self) -> Composed:
        from psycopg.sql import SQL

        same = SQL(" AND ").join(SQL("t.{0} = gone.{0}").format(_names([name])) for name in self.key)
        # A tombstone has no version; it deletes any version.
        return SQL("DELETE FROM {} AS t USING {} AS gone WHERE gone.{} AND {}").format(
            _table(self.table), _names([_STAGED]), _names([DELETED]), same
        )

    def _unless_newer(self, other: str) -> Composed:
        from psycopg.sql import SQL

        if self.version is None:
            return SQL("").format()
        text = " WHERE t.{0} IS NULL OR t.{0} <= {1}.{0}"
        return SQL(text).format(_names([self.version]), SQL(other))


def _described(url: str, table: str) -> tuple[list[str], list[list[str]]]:
    columns = (
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
        "AND has_table_privilege(attrelid, 'SELECT') AND has_table_privilege(attrelid, 'INSERT') "
        "AND has_table_privilege(attrelid, 'UPDATE') ORDER BY attnum"
    )
    # Partial indexes and indexes on expressions can't be used by ON CONFLICT (columns).
    keys = (
        "SELECT i.indexrelid, a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        "AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) WHERE i.indrelid = to_regclass(%s) "
        "AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL ORDER BY 1, 2"
    )
    from psycopg.sql import SQL

    with connected(url) as connection:
        name = _table(table).as_string(connection)
        names = [str(row[0]) for row in connection.execute(columns, (name,))]
        indexed = connection.execute(SQL(keys), (name,)).fetchall()
    return names, [[str(column) for _, column in group] for _, group in itertools.groupby(indexed, key=lambda row: row[0])]


def _table(name: str) -> Composed:
    from psycopg.sql import SQL, Identifier

    return SQL("{}").format(Identifier(*name.split(".")))


def _names(names: Sequence[str]) -> Composed:
    from psycopg.sql import SQL, Identifier

    return SQL(", ").join(Identifier(name) for name in names)
