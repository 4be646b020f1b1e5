"""Feedback: rows that a job writes to a topic which it reads itself, each with the number of times that it has come back.

The app declares the column of the rounds as a field of the feedback's source, and sets it to 0 in rows of other sources; the sink adds
one. A row that a feedback would get once too often leaves the stream before any sink of its `job.write` gets it. So does one whose number
of rounds is null or negative: it could go round for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.spec.sinks import Feedback, KafkaSink
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.selections import Selection
from penstock.jobs.stream.streams import Stream

# The tag of rows that have come back as often as they may.
ROUNDS = "rounds"


def limited(stream: Stream, routes: Mapping[str, Selection], sinks: Mapping[str, KafkaSink]) -> Stream:
    """The rows of an output without those that one of its feedbacks would get once too often.

    Args:
        stream: the output.
        routes: sink -> what it gets of it.
        sinks: those of the spec that write topics.

    Returns:
        The stream itself if no sink is a feedback.

    Raises:
        BadDeclaration: JOB-004, the rows have no column for their rounds, or what the feedback gets is only known in a micro-batch.
    """
    for name, selection in routes.items():
        feedback = sinks[name].feedback if name in sinks else None
        if feedback is not None:
            stream = _limited(stream, name, selection, feedback)
    return stream


def _limited(stream: Stream, name: str, selection: Selection, feedback: Feedback) -> Stream:
    where, column = f'job.write(..., "{name}")', feedback.column
    if callable(selection):
        need, fix = "all rows or a condition for a feedback, whose rounds are counted before the micro-batch", "filter the rows before"
        raise BadDeclaration(path=where, given="a function", need=need, fix=fix)
    if column not in stream.fields or not isinstance(stream.frame.schema[column].dataType, IntegerType | LongType):
        need = f"a column {column} of type INT or BIGINT in the rows: how often each has come back"
        fix = f"add {column} INT NOT NULL to the schema of the feedback's source, and set {column} to 0 in rows of other sources"
        raise BadDeclaration(path=where, given=", ".join(stream.fields), need=need, fix=fix)
    rounds = F.col(column)
    in_range: Column = (rounds >= 0) & (rounds < feedback.max_rounds)
    spent = ~F.coalesce(in_range, F.lit(False))
    asked = F.lit(True) if selection is None else as_column(selection)
    times = F.coalesce(rounds.cast("string"), F.lit("an unknown number of"))
    reason = F.concat(F.lit(f"{name} is limited to {feedback.max_rounds} rounds, and the row has come back "), times, F.lit(" times"))
    return stream.divert(ROUNDS, asked & spent, reason)
