"""Between streams and DataFrames: what an app does with Spark's own API comes back as a stream."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.stream.analyzed_plan import is_grouped_without_event_time
from penstock.jobs.stream.streams import EVENT_TIME, TIME, Stream

OutputMode = Literal["append", "update"]
_MODES = get_args(OutputMode)
_SELECT = "rename one of them, or select the columns to write"


def stream_of(
    frame: object, session: SparkSession, where: str, output_mode: OutputMode | None = None, event_time: str | None = None
) -> Stream:
    """A DataFrame that an app has derived from its sources as a stream.

    Args:
        frame: the DataFrame. All of its columns are data.
        session: the job's.
        where: the call of the app, for errors.
        output_mode: Spark's; None: ``update`` for an aggregation without event time, else ``append``.
        event_time: name of the column with the event time; None: ``event_time``, if the DataFrame has it.

    Raises:
        BadDeclaration: JOB-004, no DataFrame of the session, no streaming one, an event time that is no timestamp, or an unknown mode.
    """
    if output_mode not in (None, *_MODES):
        fix = "for all rows of a result in each micro-batch, keep them in the sink: a table with a key"
        raise BadDeclaration(path=where, given=f'output_mode="{output_mode}"', need=" or ".join(_MODES), fix=fix)
    checked = _checked(frame, session, where)
    time = _event_time(checked, where, event_time)
    updates = is_grouped_without_event_time(checked) if output_mode is None else output_mode == "update"
    return Stream(checked.withColumn(TIME, time), timed=event_time is not None or EVENT_TIME in checked.columns, updates=updates)


def refuse_other_frame(frame: object, session: SparkSession, where: str) -> DataFrame:
    """A DataFrame of the job's session.

    Raises:
        BadDeclaration: JOB-004, anything else.
    """
    if not isinstance(frame, DataFrame) or not hasattr(frame, "_jdf"):
        given = f"{type(frame).__module__}.{type(frame).__qualname__}"
        fix = "pass a stream of job.source, or a DataFrame derived from its .df"
        raise BadDeclaration(path=where, given=given, need="a stream or a Spark DataFrame", fix=fix)
    if frame.sparkSession._jsparkSession.sessionUUID() != session._jsparkSession.sessionUUID():
        fix = "use job.session instead of a session of your own"
        raise BadDeclaration(path=where, given="a DataFrame of another session", need="a DataFrame of the job's session", fix=fix)
    return frame


def _checked(given: object, session: SparkSession, where: str) -> DataFrame:
    frame = refuse_other_frame(given, session, where)
    if not frame.isStreaming:
        need, fix = "rows of the job's sources", "derive it from job.source(...).df; a static DataFrame can be joined to it"
        raise BadDeclaration(path=where, given="a static DataFrame", need=need, fix=fix)
    names = Counter(frame.columns)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        given, fix = f"{names[twice[0]]} columns {twice[0]}", f'name it otherwise before the join: .dataframe(event_time="{twice[0]}_2")'
        raise BadDeclaration(
            path=where, given=given, need="columns with names of their own", fix=fix if twice[0] == EVENT_TIME else _SELECT
        )
    if TIME in frame.columns:
        raise BadDeclaration(path=where, given=f"a column {TIME}", need=f"no column {TIME}, which is Penstock's", fix="rename it")
    return frame


def _event_time(frame: DataFrame, where: str, asked: str | None) -> Column:
    name = EVENT_TIME if asked is None else asked
    if name not in frame.columns:
        if asked is None:
            return F.lit(None).cast("timestamp")
        columns = ", ".join(frame.columns)
        fix = "correct the name; F.window_time of a window is its event time"
        raise BadDeclaration(path=where, given=f'event_time="{asked}"', need=f"one of the columns: {columns}", fix=fix)
    found = frame.schema[name].dataType
    if not isinstance(found, TimestampType):
        fix = 'rename the column, or name the one with the event time: event_time="..."'
        given = f"{name} {found.simpleString().upper()}"
        raise BadDeclaration(path=where, given=given, need=f"the event time, a TIMESTAMP, in the column {name}", fix=fix)
    return F.col(name)
