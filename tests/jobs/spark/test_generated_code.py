"""The code that Spark generates for the records of a source: Java compiles no method of it that is too large."""

from __future__ import annotations

import json
from itertools import cycle, islice
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.sources import records
from penstock.jobs.sources.avro_values import AvroSchema
from penstock.jobs.sources.values import Values, read
from penstock.jobs.spec import Avro
from penstock.jobs.spec.sources import EventTime

# HotSpot compiles no method of more bytes. Source: HugeMethodLimit of OpenJDK 17; CodeGenerator.DEFAULT_JVM_HUGE_METHOD_LIMIT of Spark.
_HUGE = 8_000

Form = Literal["json", "debezium", "csv", "avro"]


@pytest.mark.parametrize("form", ["json", "debezium", "csv", "avro"])
@pytest.mark.parametrize(
    ("types", "fields"),
    [(["STRING", "BIGINT", "DOUBLE", "BOOLEAN"], 40), (["STRING", "BIGINT", "TIMESTAMP"], 20)],
    ids=["of all kinds", "with TIMESTAMP"],
)
def test_records_with_many_fields_are_read_by_compiled_code(session: SparkSession, types: list[str], fields: int, form: Form) -> None:
    more = ", ".join(f"field_{number} {kind}" for number, kind in enumerate(islice(cycle(types), fields)))
    schema = StructType.fromDDL(f"id STRING NOT NULL, at BIGINT, {more}")
    assert isinstance(schema, StructType)
    time = EventTime(field="at", format="epoch-millis")
    source = records.Input(session, "events", cast(Any, SimpleNamespace(time=time)), schema)
    read_ = records.of_fields(source, read(_records(session), _values(form, schema), schema, "here")).frame
    sizes = _largest_methods(session, read_.select(F.to_json(F.struct(*read_.columns))))
    assert sizes
    assert max(sizes) <= _HUGE


def _values(form: Form, schema: StructType) -> Values:
    of_avro = {"string": "string", "bigint": "long", "double": "double", "boolean": "boolean"}
    time = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [{"name": one.name, "type": ["null", of_avro.get(one.dataType.simpleString(), time)]} for one in schema.fields]
    record = json.dumps({"type": "record", "name": "event", "fields": fields})
    return Values(form, avro=AvroSchema(record, Avro.model_validate({"schemaFile": "event.avsc"})))


def _records(session: SparkSession) -> DataFrame:
    """As of Kafka, not known before they are read."""
    text = F.col("id").cast("string")
    return session.range(1).select(
        text.cast("binary").alias("key"),
        text.cast("binary").alias("value"),
        text.alias("topic"),
        F.col("id").cast("int").alias("partition"),
        F.col("id").alias("offset"),
        F.timestamp_millis("id").alias("timestamp"),
        F.col("id").cast("int").alias(records.SPLIT),
    )


def _largest_methods(session: SparkSession, frame: DataFrame) -> list[int]:
    """Of each stage whose code is generated as a whole, the bytes of its largest method."""
    jvm: Any = session.sparkContext._jvm
    debug = getattr(jvm.org.apache.spark.sql.execution.debug, "package$")
    stages = getattr(debug, "MODULE$").codegenStringSeq(frame._jdf.queryExecution().executedPlan())
    return [int(stages.apply(number)._3().maxMethodCodeSize()) for number in range(stages.size())]
