"""Which of several rows with one key is the newest, for sinks that keep one row of each key.

The one with the greatest event time is, or with the greatest version where the sink has one. Of rows of one moment it is the one that comes
last in the micro-batch: there the records of a Kafka partition lie as they lay in the topic, and what a keyed function gives lies as it
gave it, unless a step after it has shuffled the rows. In a stream of updates a row that moves, as in a join, is deleted where it was and
written where it is at one moment, by tasks that know nothing of each other: there, a row that is there is newer than one that is gone.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.spec import Sink, ToKafka, ToPostgres, ToRedis
from penstock.jobs.stream.streams import DELETED, TIME, Stream


def newest(rows: DataFrame, *, updates: bool, version: str | None = None) -> Column:
    """What the rows of a key are ordered by, the newest having the greatest.

    Args:
        rows: data rows of a micro-batch, as it has them: shuffled before, they would have no order of their own.
        updates: whether a row stands for the one with the same key before it, see `penstock.jobs.stream.streams.Stream`.
        version: the column that goes before the event time; None: none does.
    """
    moment = F.col(TIME) if TIME in rows.columns else F.lit(None).cast("timestamp")
    by = [moment.alias("moment")]
    if version is not None:
        by.insert(0, F.col("`" + version.replace("`", "``") + "`").alias("version"))
    if updates and DELETED in rows.columns:
        gone = F.coalesce(F.col(DELETED).cast("string") == "true", F.lit(False))
        # Without a time all rows of a micro-batch would be of one moment.
        by.append((moment.isNull() | ~gone).alias("there"))
    return F.struct(*by, F.monotonically_increasing_id().alias("place"))


def refuse_unordered(stream: Stream, sink: Sink, where: str) -> None:
    """Refuses rows without event time for a sink that keeps the newest row of each key.

    The rows' places alone would not do: a shuffle, as that of `stages.stateless`, loses them.

    Args:
        stream: what is written; where it holds updates, a key has one row in a micro-batch, or rows in an order.
        sink: where it goes.
        where: for the error.

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
