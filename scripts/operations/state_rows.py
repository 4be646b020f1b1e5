"""Rows of the state in a job's checkpoint, read by Spark's state data source from S3 while the job may run.

Source: Spark 4.3.0, "State Data Source Integration Guide", and org.apache.spark.sql.execution.datasources.v2.state.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.jobs.stream.task_errors import first_line
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.checkpoint_content import CheckpointContent, QueryContent, StatefulOperator
from penstock.scripts.provisioning.errors import StateNotRead

_JOIN, _KEYED = "symmetricHashJoin", "transformWithState"
_SIDES = ("left", "right")
# Column families of Spark's own begin so: timers, time to live, counts of rows.
_INTERNAL = "$"


@dataclass(frozen=True)
class StatePart:
    """State of an operator that is read as one table.

    Args:
        query: name of its query; empty for the first.
        operator: Spark's id.
        operator_name: Spark's, such as ``stateStoreSave``.
        name: side of a join, or variable of a keyed function; empty of an operator with one table.
        micro_batch: that has left it.
    """

    query: str
    operator: int
    operator_name: str
    name: str
    micro_batch: int

    @property
    def options(self) -> dict[str, str]:
        """Of the data source."""
        which = {} if not self.name else {"joinSide" if self.operator_name == _JOIN else "stateVarName": self.name}
        return {"operatorId": str(self.operator), "batchId": str(self.micro_batch), **which}


class StateRows(BaseModel):
    """Rows of a part.

    Args:
        query: name of its query; empty for the first.
        operator: Spark's id.
        operator_name: Spark's.
        state: the part's name; empty of an operator with one table.
        micro_batch: that has left the rows.
        columns: names of the columns, ``key`` first.
        rows: column -> value, a struct's as another mapping, timestamps as ISO 8601 in UTC.
        more: whether there are more rows.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)

    query: str
    operator: int
    operator_name: str
    state: str
    micro_batch: int
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    more: bool


@dataclass(frozen=True)
class Wanted:
    """Which rows are read.

    Args:
        rows: at most so many of each part.
        query: of this query; None of all. The first query also has the name of the job.
        operator: with this id; None for all.
        state: the side or variable of this name; None for all.
        key: whose key has this value in one of its columns, as text; None for all.
    """

    rows: int
    query: str | None = None
    operator: int | None = None
    state: str | None = None
    key: str | None = None


def parts(content: CheckpointContent, wanted: Wanted) -> list[StatePart]:
    """The parts that are wanted, of those that the checkpoint has.

    Raises:
        WrongUsage: USE-001, it has none of them.
    """
    every = [part for query in content.queries if query.micro_batch >= 0 for part in _parts(query)]
    found = [part for part in every if _matches(part, content.job, wanted)]
    if found:
        return found
    asked = {"--query": wanted.query, "--operator": wanted.operator, "--state": wanted.state}
    given = " ".join(f"{option} {value}" for option, value in asked.items() if value is not None) or "--rows"
    listed = "; ".join(_options(part, content.job) for part in every)
    need = f"state that the checkpoint has: {listed}" if every else "a committed micro-batch of a query with state"
    raise WrongUsage(given=given, need=need, fix="correct it, or leave it out for all" if every else "check penstock inspect")


def read_all(
    session: SparkSession, checkpoint: str, some: Iterable[StatePart], wanted: Wanted
) -> tuple[list[StateRows], list[StateNotRead]]:
    """Rows of parts, and why others could not be read. Args as `read`."""
    found, faults = [], []
    for part in some:
        try:
            found.append(read(session, checkpoint, part, wanted))
        except StateNotRead as error:
            faults.append(error)
    return found, faults


def read(session: SparkSession, checkpoint: str, part: StatePart, wanted: Wanted) -> StateRows:
    """Rows of a part.

    Args:
        session: that can read from the bucket.
        checkpoint: URI of the job's.
        part: which.
        wanted: how many, and with which key.

    Raises:
        StateNotRead: DEP-045.
    """
    uri = f"{checkpoint}/queries/{part.query}" if part.query else checkpoint
    try:
        state = session.read.format("statestore").options(path=uri, **part.options).load()
        matching = state if wanted.key is None else _with_key(state, wanted.key)
        rows = [json.loads(row[0]) for row in matching.limit(wanted.rows + 1).select(_as_json(state)).collect()]
    except (PySparkException, Py4JError) as error:
        raise StateNotRead(
            path=f"{uri}, {_described(part)}",
            given=_said(error),
            need="state that Spark can read",
            fix="check penstock inspect, which says what is damaged; retry if the micro-batch has just expired",
        ) from error
    return StateRows(
        query=part.query,
        operator=part.operator,
        operator_name=part.operator_name,
        state=part.name,
        micro_batch=part.micro_batch,
        columns=tuple(state.columns),
        rows=tuple(rows[: wanted.rows]),
        more=len(rows) > wanted.rows,
    )


def _parts(query: QueryContent) -> Iterator[StatePart]:
    for operator in query.operators:
        for name in _names(operator):
            yield StatePart(query.name, operator.id, operator.name, name, query.micro_batch)


def _names(operator: StatefulOperator) -> Sequence[str]:
    if operator.name == _JOIN:
        return _SIDES
    if operator.name.startswith(_KEYED):
        families = {schema.name for store in operator.stores for schema in store.schemas}
        return sorted(name for name in families if name and not name.startswith(_INTERNAL))
    return ("",)


def _matches(part: StatePart, job: str, wanted: Wanted) -> bool:
    return (
        wanted.query in (None, part.query, *([job] if not part.query else []))
        and wanted.operator in (None, part.operator)
        and wanted.state in (None, part.name)
    )


def _options(part: StatePart, job: str) -> str:
    state = f" --state {part.name}" if part.name else ""
    return f"--query {part.query or job} --operator {part.operator}{state}"


def _said(error: Exception) -> str:
    """The last cause in the JVM, which says more than the task that failed of it."""
    cause: Any = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return first_line(error) if cause is None else str(cause.toString()).splitlines()[0]


def _described(part: StatePart) -> str:
    return " ".join(one for one in (f"operator {part.operator}", part.operator_name, part.name) if one)


def _with_key(state: DataFrame, key: str) -> DataFrame:
    kind = state.schema["key"].dataType
    columns: Iterable[str] = [f"key.`{name}`" for name in kind.names] if isinstance(kind, StructType) else ["key"]
    return state.where(reduce(lambda one, other: one | other, [F.col(column).cast("string").eqNullSafe(key) for column in columns]))


def _as_json(state: DataFrame) -> Column:
    columns = F.struct(*(_whole(field).alias(field.name) for field in state.schema.fields))
    return F.to_json(columns, {"ignoreNullFields": "false"})


def _whole(field: StructField) -> Column:
    """A column, if it is a struct with the fields that its type has: a join's values have one more, whether a row has been matched."""
    column = F.col(f"`{field.name}`")
    if not isinstance(field.dataType, StructType):
        return column
    inner = F.struct(*(column.getField(name).alias(name) for name in field.dataType.names))
    return F.when(column.isNotNull(), inner)
