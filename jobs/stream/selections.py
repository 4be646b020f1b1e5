"""What of a query's rows each of its sinks gets: all of them, those of a condition, or what a function makes of a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.dataframes import refuse_other_frame
from penstock.jobs.stream.errors import AppFailed
from penstock.jobs.stream.leaving import counted
from penstock.jobs.stream.streams import TIME
from penstock.jobs.stream.task_errors import first_line
from penstock.sizing.errors import PenstockError

# A function of the DataFrame of a micro-batch.
Step = Callable[[DataFrame], DataFrame]
Selection = str | Column | Step | None
# The operator that counts the data rows.
DATA = "job.write"
_MARKS = "_to_"


def routed(frame: DataFrame, selections: Mapping[str, Selection]) -> DataFrame:
    """The rows of a query, counted, and marked with the sinks that they go to.

    They are marked in the query rather than when the micro-batch is written, so that expressions that depend on the clock or on
    randomness are evaluated once for all sinks.

    Args:
        frame: the query.
        selections: sink -> what it gets; a condition is a mark.

    Raises:
        BadDeclaration: JOB-004, a condition that Spark rejects, or a column of the frame named as a mark.
    """
    for sink, condition in selections.items():
        if isinstance(condition, str | Column):
            if mark(sink) in frame.columns:
                need, fix = f"no column {mark(sink)} beside a condition for the sink", "rename the column"
                raise BadDeclaration(path=_where(sink), given=f"a column {mark(sink)}", need=need, fix=fix)
            frame = _marked(frame, sink, condition)
    return counted(frame, DATA)


def mark(sink: str) -> str:
    """The column that marks the rows of a sink."""
    return f"{_MARKS}{sink}"


def all_columns_but_marks(frame: DataFrame, sinks: Iterable[str]) -> DataFrame:
    """The rows without the marks of the sinks."""
    marks = [mark(sink) for sink in sinks]
    return frame.drop(*marks) if marks else frame


def applied(step: Step, rows: DataFrame, sink: str) -> DataFrame:
    """What a function makes of a micro-batch's rows: with the column of the event time, null if the function dropped it.

    Args:
        step: the app's function.
        rows: data columns and the event time.
        sink: that the result is for.

    Raises:
        BadDeclaration: JOB-004, a result that is no DataFrame of the session.
        AppFailed: JOB-003, the function has raised something.
    """
    try:
        made = step(rows)
    except PenstockError:
        raise
    except Exception as error:
        message = (error.getMessage() or str(error)) if isinstance(error, PySparkException) else first_line(error)
        need = "a function of a micro-batch's DataFrame that returns the rows to write"
        given = f"{type(error).__name__}: {message.strip().splitlines()[0]}"
        fix = "correct the function; the driver's log has its traceback"
        raise AppFailed(path=_where(sink), given=given, need=need, fix=fix) from error
    frame = refuse_other_frame(made, rows.sparkSession, _where(sink))
    return frame if TIME in frame.columns else frame.withColumn(TIME, F.lit(None).cast("timestamp"))


def tried(step: Step, frame: DataFrame, session: SparkSession, sink: str) -> DataFrame:
    """What a function makes of a micro-batch without rows, by which the plan of its result is known before the query starts.

    Args:
        step: the app's function.
        frame: the query.
        session: Spark's session.
        sink: that the result is for.

    Raises:
        BadDeclaration: as `applied`, and for a result that is a stream.
        AppFailed: as `applied`.
    """
    made = applied(step, session.createDataFrame([], frame.schema), sink)
    if made.isStreaming:
        fix = "derive it from the function's argument, or write it by a job.write of its own"
        raise BadDeclaration(path=_where(sink), given="a streaming DataFrame", need="rows of the micro-batch", fix=fix)
    return made


def _marked(frame: DataFrame, sink: str, condition: str | Column) -> DataFrame:
    try:
        column = as_column(condition)
        frame = frame.withColumn(mark(sink), column.cast("boolean"))
        frame.where(column)
    except (AnalysisException, ParseException) as error:
        message = " ".join((error.getMessage() or str(error)).split("SQLSTATE")[0].split()).rstrip(";. ")
        need = f"a valid condition on the rows; {message}"
        raise BadDeclaration(path=_where(sink), given=str(condition), need=need, fix="correct the condition") from None
    return frame


def _where(sink: str) -> str:
    return f'job.write(..., "{sink}")'
