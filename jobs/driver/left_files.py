"""Rows of files that are not closed, as a driver that crashed leaves them: the checkpoint has them, and only their sink publishes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from penstock.jobs.driver.errors import StateDiffers
from penstock.jobs.sinks.part_log import PartLog
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.query_record import QueryRecord, SinkRecord

_FIX = "deploy the job as it was and stop it, which closes its files; or, to leave these rows unpublished, checkpoint.stateSchema: any"


def left_files(checkpoint: Checkpoint, before: Mapping[str, QueryRecord], now: Mapping[str, QueryRecord]) -> Iterator[StateDiffers]:
    """The sinks of files that queries no longer have, or have in another bucket, with rows that are not published. A job that was stopped
    has none.

    Args:
        checkpoint: of the job.
        before: query -> its record in the generation whose checkpoint it is; the first query's name is empty.
        now: the same of the queries that go on with it.

    Raises:
        CheckpointDamaged: JOB-008.
        BucketUnreachable: JOB-009.
    """
    for query in sorted(before.keys() & now.keys()):
        kept = {sink.name: sink for sink in _file_sinks(now[query])}
        for sink in _file_sinks(before[query]):
            # Parts are staged in the bucket of their files: only a sink of that bucket can publish them.
            goes_on = sink.name in kept and _bucket(kept[sink.name]) == _bucket(sink)
            rows = 0 if goes_on or now[query].sinks is None else _left(PartLog(checkpoint.of_query(query), sink.name))
            if rows:
                path = f"{f'query {query}' if query else 'the query'}, sink {sink.name}"
                need = f"the sink of files {sink.place}: the checkpoint has {rows:,} rows of it that are not published"
                given = kept[sink.name].said if sink.name in kept else "no sink of files"
                yield StateDiffers(path=path, given=given, need=need, fix=_FIX)


def _file_sinks(record: QueryRecord) -> list[SinkRecord]:
    return [sink for sink in record.sinks or () if sink.kind == "files"]


def _bucket(sink: SinkRecord) -> str:
    """The bucket that the sink names; empty for the environment's."""
    return urlsplit(sink.place).netloc


def _left(log: PartLog) -> int:
    """Rows of the last decision's files that are open, or decided and not known to be published."""
    last = log.last()
    if last is None:
        return 0
    decided = 0 if log.published(last) else sum(part.rows for part in last.parts)
    return decided + sum(chunk.rows for part in last.open for chunk in part.chunks)
