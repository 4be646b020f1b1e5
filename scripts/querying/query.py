"""A query of a user: parsed and analyzed by Spark, whose faults are told by their place in the query."""

from __future__ import annotations

import difflib
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from penstock.jobs.stream.task_errors import first_line
from penstock.scripts.querying.errors import InvalidQuery, InvalidSyntax, NotFollowed, QueryEnded, UnknownTable
from penstock.sizing.errors import PenstockError, Place

# How errors name the query.
QUERY = "QUERY"
_PLACE = re.compile(r"\bline (\d+),? pos (\d+)")
# Of Spark's error conditions.
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
# Spark's own, for a folder of this machine. Source: Spark 4.3.0, CheckpointFileManager.scala.
_CHECKPOINT_FILES = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
# How soon a limit or an interrupt is noticed, in seconds.
_LOOK_S = 0.2


def analyzed(session: SparkSession, query: str, tables: Sequence[str]) -> DataFrame:
    """The rows of a query.

    Args:
        session: has the tables as views.
        query: one statement that returns rows.
        tables: names of the tables.

    Raises:
        PenstockError: SQL-001 to SQL-003.
    """
    jvm: Any = session._jsparkSession
    try:
        # Only queries: a command could change what is not the session's.
        jvm.sessionState().sqlParser().parseQuery(query)
        return session.sql(query)
    except ParseException as error:
        fix = "correct it; names with a dash or a dot need backticks"
        at = _place(error)
        raise InvalidSyntax(path=_path(at), given=_said(error), need="a query in Spark SQL", fix=fix, at=at) from error
    except AnalysisException as error:
        raise _unresolved(error, tables) from error


# Takes rows, and returns how many they were.
Show = Callable[[Iterable[Sequence[Any]]], int]


def collected(frame: DataFrame, limit: int | None, show: Show) -> None:
    """Shows the rows of what is there, partition by partition as they are computed.

    Args:
        frame: of `analyzed`.
        limit: the most rows; None: all.
        show: takes rows.

    Raises:
        QueryEnded: SQL-005.
    """
    try:
        show(_values((frame if limit is None else frame.limit(limit)).toLocalIterator(prefetchPartitions=limit is None)))
    except (PySparkException, Py4JJavaError) as error:
        raise _failed(error) from error


def followed(frame: DataFrame, limit: int | None, show: Show) -> None:
    """Shows the rows of what is there and of what comes, micro-batch by micro-batch, until the limit. The checkpoint is a temporary folder.

    Args:
        frame: of `analyzed`, of streams.
        limit: the most rows; None: until an interrupt.
        show: takes rows.

    Raises:
        PenstockError: SQL-004, SQL-005.
        KeyboardInterrupt: once the query has ended.
    """
    shown = _Shown(limit, show)
    # Of the query: the session has that of jobs, which writes to S3.
    frame.sparkSession.conf.set(*_CHECKPOINT_FILES)
    with tempfile.TemporaryDirectory(prefix="penstock-sql-") as checkpoint:
        writer = frame.writeStream.foreachBatch(shown).option("checkpointLocation", checkpoint).outputMode(_mode(frame))
        try:
            query = writer.start()
        except AnalysisException as error:
            need = "a query that Structured Streaming supports"
            fix = "leave out --follow, or change the query: ORDER BY and LIMIT need an end"
            at = _place(error)
            raise NotFollowed(path=_path(at), given=_said(error), need=need, fix=fix, at=at) from error
        try:
            while not shown.enough.is_set() and query.isActive:
                shown.enough.wait(_LOOK_S)
        finally:
            query.stop()
        failure = query.exception()
    if shown.failure is not None:
        raise shown.failure
    if failure is not None and not shown.enough.is_set():
        raise _failed(failure)


class _Shown:
    """The function that Spark calls with each micro-batch."""

    def __init__(self, limit: int | None, show: Show) -> None:
        self._left, self._show = limit, show
        self.enough = threading.Event()
        self.failure: OSError | None = None

    def __call__(self, batch: DataFrame, _: int) -> None:
        if self.enough.is_set():
            return
        try:
            count = self._show(_values((batch if self._left is None else batch.limit(self._left)).toLocalIterator()))
        except OSError as error:
            # Nobody reads the output.
            self.failure = error
            self.enough.set()
            return
        if self._left is not None:
            self._left -= count
            if self._left <= 0:
                self.enough.set()


def _values(rows: Iterable[Row]) -> Iterator[Sequence[Any]]:
    """The values of rows; rows within them are dictionaries."""
    return ([_nested(value) for value in row] for row in rows)


def _nested(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: _nested(one) for name, one in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _nested(one) for name, one in value.items()}
    return [_nested(one) for one in value] if isinstance(value, list) else value


def _mode(frame: DataFrame) -> str:
    """Groups show their updates; joins of streams know only rows that stay."""
    return "update" if re.search(r"\bAggregate\b", str(frame._jdf.queryExecution().analyzed().toString())) else "append"


def _unresolved(error: AnalysisException, tables: Sequence[str]) -> PenstockError:
    at = _place(error)
    if error.getCondition() != _NO_TABLE:
        return InvalidQuery(
            path=_path(at), given=_said(error), need="columns and functions that exist, of types that fit", fix="correct it", at=at
        )
    name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
    close = difflib.get_close_matches(name, tables, n=1)
    fix = (
        f"did you mean {quoted(close[0])}?" if close else "penstock sql without a query lists the tables, also topics that do not exist yet"
    )
    return UnknownTable(
        path=_path(at), given=name, need=f"one of {', '.join(map(quoted, tables)) or 'none: no topic exists'}", fix=fix, at=at
    )


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name}`"


def _path(at: Place) -> str:
    """Beside the line, which the place of an error shows."""
    return "query" if at.column is None else f"column {at.column}"


def _place(error: PySparkException) -> Place:
    match = _PLACE.search(str(error))
    return Place(file=QUERY, line=int(match.group(1)), column=int(match.group(2)) + 1) if match else Place(file=QUERY)


def _said(error: PySparkException) -> str:
    """Spark's message, in a line: without the query, the plan and the state of SQL."""
    message = str(error).split("== SQL", 1)[0].split(";\n", 1)[0].split(" SQLSTATE", 1)[0]
    return " ".join(re.sub(r"^\[[A-Z0-9_.]+\] ", "", _PLACE.sub("", message).strip()).split())


def _failed(error: PySparkException | Py4JJavaError) -> QueryEnded:
    """The innermost cause: around it are tasks, jobs and threads."""
    given = first_line(Exception(str(error).split("Caused by: ")[-1])).split(" SQLSTATE", 1)[0]
    return QueryEnded(path="query", given=given, need="a query that runs to its end", fix="check the query, and that the brokers run")
