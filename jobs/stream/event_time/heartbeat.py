"""Micro-batches that continue while no rows arrive, for jobs whose watermark follows the clock.

Spark runs a micro-batch only if a source has new data. Such a job therefore has a rate source beside its own sources. Its rows are all
filtered out: they only trigger micro-batches, no more often than the trigger allows.

Cost: every trigger runs a micro-batch, with its checkpoint writes, even while the job has nothing to do.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream.streams import Stream

# Prefix of the source's description in a query's progress: org.apache.spark.sql.execution.streaming.sources.RateStreamMicroBatchStream,
# Spark 4.3.0.
DESCRIPTION = "RateStream"


def once_at_start(session: SparkSession, stream: Stream) -> Stream:
    """The job's output unioned with a source that causes one micro-batch whenever the query is started, and contributes no rows.

    A bounded run needs it: without input there would be no micro-batch that could say that it has ended, and after a restart Spark
    runs none only because the watermark has advanced (MicroBatchExecution.constructNextBatch asks the last execution, Spark 4.3.0).

    Args:
        session: Spark's session.
        stream: as for `added`.
    """
    return _joined_by(session.readStream.format("rate-micro-batch").options(rowsPerBatch="1", numPartitions="1").load(), stream)


def added(session: SparkSession, stream: Stream) -> Stream:
    """The job's output unioned with a heartbeat, which contributes no rows.

    Args:
        session: Spark's session.
        stream: the output, downstream of all stateful operators, so that none of them sees the heartbeat.
    """
    return _joined_by(session.readStream.format("rate").options(rowsPerSecond="1", numPartitions="1").load(), stream)


def _joined_by(beats: DataFrame, stream: Stream) -> Stream:
    # Rate sources count from 0, so no row remains. The optimizer does not know that and keeps them.
    none = beats.where("value < 0").select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in stream.frame.schema.fields))
    return replace(stream, frame=stream.frame.unionByName(none))
