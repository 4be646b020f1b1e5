"""Values: the content of a source's records, parsed into the fields of the app's schema or into the reason of a failure.

No record stops a job: an invalid one goes to quarantine with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources import avro_values, csv_values, debezium_values, json_values
from penstock.jobs.sources.avro_values import AvroSchema
from penstock.jobs.sources.extremes import outside_of_the_calendar
from penstock.jobs.sources.fields import field, with_fields
from penstock.jobs.sources.keys import key_columns
from penstock.jobs.spec import Csv, KafkaKey
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import DELETED

# The error of a value that is not null; a format adds it in addition to the fields.
WRONG = "_wrong"


@dataclass(frozen=True)
class Values:
    """Format of values.

    Args:
        form: ``json``, ``debezium``, ``avro``, ``csv``, ``text`` or ``bytes``.
        csv: settings for CSV.
        avro: schema for Avro.
        deletes: fields and format of a tombstone's key, if tombstones delete; None: a record without a value is an error.
    """

    form: Literal["json", "debezium", "avro", "csv", "text", "bytes"]
    csv: Csv | None = None
    avro: AvroSchema | None = None
    deletes: KafkaKey | None = None


def read(records: DataFrame, values: Values, schema: StructType, where: str) -> DataFrame:
    """Adds to records their fields, or the reason why they have none.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        values: format of the values.
        schema: fields of the value; those that are not nullable are required.
        where: the source in the app, for errors.

    Returns:
        The records with the fields of `penstock.jobs.sources.fields` (of an invalid record what its parser made of it, which no expression
        of an app may see), ``_reason`` (null for a row) and, of Debezium's change events or if tombstones delete, ``_deleted``.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have.
    """
    frame = _parsed(records, values, schema, where)
    reason = F.when(F.col("value").isNull(), F.lit("the record has no value")).otherwise(F.col(WRONG))
    removed = F.coalesce(debezium_values.REMOVED, F.lit(False)) if values.form == "debezium" else F.lit(False)
    frame = frame.withColumn(REASON, F.coalesce(reason, *misfits(schema, removed)))
    if values.form == "debezium":
        frame = frame.withColumn(DELETED, removed).drop(debezium_values.REMOVED)
    return (frame if values.deletes is None else _with_tombstones(frame, values, values.deletes, schema, where)).drop(WRONG)


def _with_tombstones(frame: DataFrame, values: Values, deletes: KafkaKey, schema: StructType, where: str) -> DataFrame:
    """Rows of the keys of records without a value, instead of a reason."""
    gone = F.col("value").isNull()
    text = debezium_values.unwrapped_key(F.col("key")) if values.form == "debezium" else F.col("key").cast("string")
    key, wrong = key_columns(deletes, schema, where, text)
    deleted = F.col(DELETED) if values.form == "debezium" else F.lit(False)
    columns = {name: F.when(gone, F.when(wrong.isNull(), of_key)).otherwise(field(name)) for name, of_key in key.items()}
    return with_fields(frame.withColumn(REASON, F.when(gone, wrong).otherwise(F.col(REASON))), columns).withColumn(DELETED, gone | deleted)


def misfits(schema: StructType, removed: Column | None = None) -> list[Column]:
    """Errors of parsed fields; null for each valid one.

    Args:
        schema: schema of the fields.
        removed: whether it is the row of a delete, in which fields may be missing that the schema requires: databases log the key alone.
    """
    stays = F.lit(True) if removed is None else ~removed
    required = [one.name for one in schema.fields if not one.nullable]
    missing = [F.when(stays & field(name).isNull(), F.lit(f"{name} is missing")) for name in required]
    outside = {one.name: outside_of_the_calendar(field(one.name), one.dataType) for one in schema.fields}
    messages = {name: F.lit(f"{name} is not within the years 0001 to 9999") for name in schema.names}
    return missing + [F.when(wrong, messages[name]) for name, wrong in outside.items() if wrong is not None]


def _parsed(records: DataFrame, values: Values, schema: StructType, where: str) -> DataFrame:
    if values.form == "json":
        return json_values.parsed(records, schema)
    if values.form == "debezium":
        return debezium_values.parsed(records, schema)
    if values.form == "csv":
        return csv_values.parsed(records, schema, values.csv or Csv())
    if values.form == "avro":
        assert values.avro is not None
        return avro_values.parsed(records, schema, values.avro, where)
    return _plain(records, values.form, schema, where)


def _plain(records: DataFrame, form: str, schema: StructType, where: str) -> DataFrame:
    """The whole value as the only field."""
    kind = StringType() if form == "text" else BinaryType()
    if [one.dataType for one in schema.fields] != [kind]:
        need = f"one field, of type {kind.simpleString().upper()}, for values as {form}"
        raise BadDeclaration(
            path=where, given=schema.simpleString(), need=need, fix="correct the schema, or the source's value format in the spec"
        )
    text = F.col("value").cast("string")
    value: Column = text if form == "text" else F.col("value")
    wrong = F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8")) if form == "text" else F.lit(None).cast("string")
    return with_fields(records, {schema.names[0]: value}).withColumn(WRONG, wrong)
