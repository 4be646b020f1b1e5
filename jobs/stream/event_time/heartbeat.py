"""Micro-batches that go on while no rows come, for jobs whose watermark follows the clock.

Spark runs a micro-batch only where a source has something new. Beside the job's own sources such a job therefore has one that counts
seconds. Its rows are all filtered out: they only make micro-batches, no more than the trigger allows.

Cost: each trigger has its micro-batch, with its writes to the checkpoint, also while the job has nothing to do.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.jobs.spec.job import JobSpec
from penstock.jobs.stream.streams import Stream

# How the source's description begins in a query's progress: org.apache.spark.sql.execution.streaming.sources.RateStreamMicroBatchStream,
# Spark 4.3.0.
DESCRIPTION = "RateStream"


def needed(spec: JobSpec) -> bool:
    """Whether a job's watermark follows the clock. A bounded run ends with its input and has no need of it."""
    by_clock = any(source.time is not None and source.time.kind == "processing" for source in spec.sources.values())
    return spec.trigger != "availableNow" and (by_clock or spec.when_idle == "clock")


def added(session: SparkSession, stream: Stream) -> Stream:
    """The job's output with a heartbeat beside it, which brings no rows.

    Args:
        session: Spark's session.
        stream: the output; behind all stateful operators, so that none of them sees the heartbeat.
    """
    beats = session.readStream.format("rate").options(rowsPerSecond="1", numPartitions="1").load()
    # Counted from 0: no row is left. The optimizer does not know that, and keeps the source.
    none = beats.where("value < 0").select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in stream.frame.schema.fields))
    return replace(stream, frame=stream.frame.unionByName(none))
