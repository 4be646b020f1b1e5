"""Which of several rows of a key is the newest, for sinks that keep one row per key.

The newest row has the greatest event time, or the greatest version if the sink has one. Among rows of the same time it is the last one
of the micro-batch: the records of a Kafka partition keep their order in the topic, and the results of a keyed function keep theirs,
unless a later step has shuffled the rows. In a stream of updates a row that moves, as in a join, is deleted in one place and written in
another at the same time, by independent tasks: in such a stream an existing row is newer than a deleted one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.spec import Sink, ToKafka, ToPostgres, ToRedis
from penstock.jobs.stream.streams import DELETED, TIME, Stream


def newest(rows: DataFrame, *, updates: bool, version: str | None = None) -> Column:
    """Ordering of the rows of a key; the newest is the greatest.

    Args:
        rows: data rows of a micro-batch, in its order: they must not be shuffled before.
        updates: whether a row replaces the earlier one with its key, see `penstock.jobs.stream.streams.Stream`.
        version: column that precedes the event time; None for no such column.
    """
    moment = F.col(TIME) if TIME in rows.columns else F.lit(None).cast("timestamp")
    by = [moment.alias("moment")]
    if version is not None:
        by.insert(0, F.col("`" + version.replace("`", "``") + "`").alias("version"))
    if updates and DELETED in rows.columns:
        gone = F.coalesce(F.col(DELETED).cast("string") == "true", F.lit(False))
        # Without event time, all rows of a micro-batch have the same time.
        by.append((moment.isNull() | ~gone).alias("exists"))
    return F.struct(*by, F.monotonically_increasing_id().alias("place"))


def refuse_unordered(stream: Stream, sink: Sink, where: str) -> None:
    """Rejects rows without event time for a sink that keeps the newest row of each key.

    The position of the rows is not sufficient: a shuffle, such as that of `stages.stateless`, loses it.

    Args:
        stream: stream to write; if it holds updates, a key has one row in a micro-batch, or ordered rows.
        sink: sink to write it to.
        where: place of the error.

    Raises:
        BadDeclaration: JOB-004.
    """
    if stream.timed or stream.updates or not _keeps_the_newest(sink):
        return
    by_version = ", set `version` of the sink" if isinstance(sink, ToPostgres) and not sink.postgres.deletes else ""
    raise BadDeclaration(
        path=where,
        given="rows without event time",
        need="event time, to keep the newest of several rows with the same key",
        fix=f"set `time` of the source (kind: ingestion uses the broker's){by_version}, or updates=True of a keyed function",
    )


def _keeps_the_newest(sink: Sink) -> bool:
    match sink:
        case ToPostgres(postgres=table):
            # A tombstone has no version.
            return table.version is None or table.deletes
        case ToKafka(kafka=topic):
            return topic.deletes
        case _:
            return isinstance(sink, ToRedis)
