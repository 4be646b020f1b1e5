"""A lookup's side in each task: keys in, rows out of the journal, the cache or the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from penstock.jobs.blocks.calls.journal import KEY, PAGE, Entry, Journal
from penstock.jobs.blocks.lookups.cache import Found, of_this_worker
from penstock.jobs.blocks.lookups.errors import LookupTableDoesNotFit
from penstock.jobs.blocks.lookups.queries import Database, NoSuchValue
from penstock.jobs.stream.task_context import TaskPlace
from penstock.jobs.stream.task_errors import in_a_task

if TYPE_CHECKING:
    import pyarrow as pa

# Columns with the key's parts, numbered.
PART = "_lookup_"
# Keys per query.
_KEYS_A_QUERY = 500
_ROW = "row"

Parts = tuple[Any, ...]


@dataclass(frozen=True)
class LookupTask:
    """Sent to the Python workers.

    Args:
        journal: its name.
        path: the table's, for errors.
        url: of the database.
        query: see `penstock.jobs.blocks.lookups.table.LookupTable.query`.
        parts: number of key columns.
        row: fields of a row of the table.
        column: the name of the row in the result.
        ttl_ms: of the cache.
        entries: of the cache.
        concurrency: concurrent queries of a task.
        timeout_ms: of a query.
        retry_limit_s: see `penstock.jobs.blocks.lookups.queries.Database`.
    """

    journal: str
    path: str
    url: str = field(repr=False)
    query: str
    parts: int
    row: pa.Schema
    column: str
    ttl_ms: int
    entries: int
    concurrency: int
    timeout_ms: int
    retry_limit_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows with the looked-up row as one more column, without the key's parts."""
        with in_a_task():
            journal = Journal(TaskPlace.here(), self.journal, self._page())
            with Database(self.url, self.path, self.timeout_ms, self.retry_limit_s) as database:
                run = _Run(self, journal, database)
                for batch in batches:
                    yield run.looked_up(batch)

    def _page(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([(KEY, pa.string()), (_ROW, self.struct())])

    def struct(self) -> pa.StructType:
        """The type of a row of the table."""
        import pyarrow as pa

        return pa.struct(list(self.row))


class _Run:
    def __init__(self, task: LookupTask, journal: Journal, database: Database) -> None:
        self._task = task
        self._journal = journal
        self._database = database
        self._cache = of_this_worker((task.url, task.query), task.ttl_ms, task.entries)

    def looked_up(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        keys = self._keys(batch)
        wanted = {_text(parts): parts for parts in keys if parts is not None}
        entries = self._entries(wanted)
        rows = [None if parts is None else entries[_text(parts)][_ROW] for parts in keys]
        kept = [name for name in batch.schema.names if not name.startswith(PART)]
        columns = [*(batch.column(name) for name in kept), pa.array(rows, type=self._task.struct())]
        return pa.RecordBatch.from_arrays(columns, names=[*kept, self._task.column])

    def _keys(self, batch: pa.RecordBatch) -> list[Parts | None]:
        """Each row's key; None if nothing is looked up for it."""
        columns = [batch.column(f"{PART}{number}").to_pylist() for number in range(self._task.parts)]
        return [None if None in parts else parts for parts in zip(*columns, strict=True)]

    def _entries(self, wanted: Mapping[str, Parts]) -> dict[str, Entry]:
        entries = self._journal.find(wanted)
        rows_by_key: dict[str, Found] = {}
        unknown: list[str] = []
        for key in wanted.keys() - entries.keys():
            known, row = self._cache.get(key)
            if known:
                rows_by_key[key] = row
            else:
                unknown.append(key)
        for key, row in self._asked(sorted(unknown), wanted).items():
            self._cache.put(key, row)
            rows_by_key[key] = row
        news = sorted(rows_by_key)
        for start in range(0, len(news), PAGE):
            entries |= self._journal.append({key: {_ROW: rows_by_key[key]} for key in news[start : start + PAGE]})
        return entries

    def _asked(self, keys: Sequence[str], wanted: Mapping[str, Parts]) -> dict[str, Found]:
        """The database's rows for keys, None for a miss."""
        some = [keys[start : start + _KEYS_A_QUERY] for start in range(0, len(keys), _KEYS_A_QUERY)]
        if not some:
            return {}
        with ThreadPoolExecutor(min(self._task.concurrency, len(some))) as pool:
            answers = pool.map(lambda part: self._query([wanted[key] for key in part]), some)
            return dict(zip(keys, chain.from_iterable(answers), strict=True))

    def _query(self, keys: Sequence[Parts]) -> list[Found]:
        results: list[Found] = [None] * len(keys)
        try:
            rows = self._database.rows(self._task.query, [list(column) for column in zip(*keys, strict=True)])
        except NoSuchValue:
            half = len(keys) // 2
            return [*self._query(keys[:half]), *self._query(keys[half:])] if half else results
        for number, *values in rows:
            if results[number - 1] is not None:
                given = f"several rows for {_text(keys[number - 1])}"
                need, fix = "at most one row per key", "set key to the columns of a unique key, or use a view that has one"
                raise LookupTableDoesNotFit(path=self._task.path, given=given, need=need, fix=fix)
            results[number - 1] = dict(zip(self._task.row.names, values, strict=True))
        return results


def _text(parts: Parts) -> str:
    return json.dumps(parts, default=str)
