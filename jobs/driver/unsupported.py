"""What Structured Streaming does not support: operators that streams can't have, or not in this output mode or place."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.stream.streams import Stream

_CHECKED = "spark.sql.streaming.unsupportedOperationCheck"


def refuse_unsupported(stream: Stream) -> None:
    """Asks Spark whether it would start a query, as it does itself when the query is started.

    The check is a public method of a class of Spark's JVM (org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker, Spark
    4.3.0). Spark's planner finds more, at the start of a query.

    Args:
        stream: what the query computes.

    Raises:
        BadDeclaration: JOB-004.
    """
    session = stream.frame.sparkSession
    if session.conf.get(_CHECKED, "true") != "true":
        return
    jvm: Any = session.sparkContext._jvm
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = modes.Update() if stream.updates else modes.Append()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(stream.frame._jdf.queryExecution().analyzed(), mode)
    except AnalysisException as error:
        raise unsupported(error) from error


def unsupported(error: AnalysisException) -> BadDeclaration:
    """What Spark refuses when it starts a query."""
    message = (error.getMessage() or str(error)).split(";\n")[0].split(" SQLSTATE")[0]
    fix = "change the query; Spark's Structured Streaming guide lists unsupported operations"
    return BadDeclaration(path="job.write", given=" ".join(message.split()), need="what Structured Streaming supports", fix=fix)
