"""Which changes of a query its state takes, for a corpus of changes."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.driver.state_changes import state_changes
from penstock.jobs.state_schema import StateSchema
from penstock.jobs.storage.query_record import QueryRecord
from penstock.jobs.stream.analyzed_plan import stateful_operators
from penstock.jobs.stream.state_schemas import state_schemas
from tests.jobs.spark.state_corpus import BASE, DIFFERS, FITS, Query


def _rows(session: SparkSession) -> DataFrame:
    """A stream with event time ``at``, and columns of several types."""
    read = session.readStream.format("rate").load()
    value = F.col("value")
    columns = {"user": value.cast("string"), "shop": value.cast("string"), "n": value, "m": value + 1, "x": value.cast("double")}
    return read.select(F.col("timestamp").alias("at"), *(column.alias(name) for name, column in columns.items())).withWatermark(
        "at", "9 seconds"
    )


def _record(session: SparkSession, query: Query) -> QueryRecord:
    frame = query(_rows(session))
    return QueryRecord.of(["a"], [operator.name for operator in stateful_operators(frame)], state_schemas(frame))


def _differences(session: SparkSession, old: Query, new: Query) -> list[str]:
    return [str(one.given) for one in state_changes({"": _record(session, old)}, {"": _record(session, new)})]


@pytest.mark.parametrize("change", FITS)
def test_state_that_is_the_same_fits(session: SparkSession, change: str) -> None:
    assert _differences(session, *FITS[change]) == []


@pytest.mark.parametrize("change", DIFFERS)
def test_state_that_is_another_does_not(session: SparkSession, change: str) -> None:
    old, new, what = DIFFERS[change]
    (found, *_) = _differences(session, old, new) or ["no difference"]
    assert what in found


def test_the_delay_of_a_watermark_is_no_part_of_the_state(session: SparkSession) -> None:
    assert _differences(session, BASE, lambda rows: BASE(rows.withWatermark("at", "1 minute"))) == []


def test_state_that_is_not_known_is_not_compared(session: SparkSession) -> None:
    known = _record(session, BASE)
    unknown = known.model_copy(update={"operators": tuple(one.model_copy(update={"state": None}) for one in known.operators)})
    assert list(state_changes({"": unknown}, {"": known})) == []
    assert known.operators[0].state != StateSchema()
