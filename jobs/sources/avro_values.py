"""Avro values, decoded with the schema that they were written with.

Avro data does not identify its schema: a value that was written with another schema may decode to something. Each value is therefore
decoded as the first field of a record whose second field is a marker of ours; if the marker does not come out whole, the value has fewer
or more bytes than its schema requires.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import DataType, StructField, StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources.fields import with_fields
from penstock.jobs.spec import Avro

_END = b"penstock"
# Confluent's wire format: a zero byte and the schema's id in four bytes, big-endian.
_FRAME_BYTES = 5
# Type of the file -> lossless types of the app's schema.
_WIDER = {"int": {"bigint", "double"}, "float": {"double"}}


@dataclass(frozen=True)
class AvroSchema:
    """A writer's schema and the framing of values.

    Args:
        text: content of the ``.avsc`` file.
        avro: Avro settings of the spec.
    """

    text: str
    avro: Avro


def parsed(records: DataFrame, schema: StructType, avro: AvroSchema, where: str) -> DataFrame:
    """Adds the fields and the error ``_wrong`` of their values to records.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        schema: fields of the app, named as in the writer's schema.
        avro: the writer's schema.
        where: the source in the app, for errors.

    Raises:
        BadDeclaration: JOB-004, not an Avro schema, or one without a field of the app, or with another type for it.
    """
    framed = avro.avro.framing == "confluent"
    datum = F.substring("value", _FRAME_BYTES + 1, 2**31 - 1) if framed else F.col("value")
    try:
        read = from_avro(F.concat(datum, F.lit(_END)), json.dumps(_closed(avro.text)), {"mode": "PERMISSIVE"})
        frame = records.withColumn("_avro", read)
        schema_read = frame.schema["_avro"].dataType
    except (PySparkException, Py4JJavaError, ValueError) as error:
        message = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
        need = f"a valid Avro schema; {message.splitlines()[0]}"
        raise BadDeclaration(path=where, given=avro.avro.schema_file, need=need, fix="correct the schema") from None
    assert isinstance(schema_read, StructType)
    fields = _fields(schema, schema_read["value"].dataType, avro.avro.schema_file, where)
    frame = with_fields(frame, fields)
    return frame.withColumn("_wrong", _wrong(avro.avro)).drop("_avro")


def _closed(text: str) -> dict[str, Any]:
    end = {"type": "fixed", "name": "penstock_end", "size": len(_END)}
    return {
        "type": "record",
        "name": "penstock_closed",
        "fields": [{"name": "value", "type": json.loads(text)}, {"name": "end", "type": end}],
    }


def _wrong(avro: Avro) -> Column:
    file = avro.schema_file
    end = F.col("_avro")["end"]
    wrong = F.when(end.isNull(), F.lit(f"the value is not Avro of {file}"))
    wrong = wrong.when(end != F.lit(_END), F.lit(f"the value has more bytes than {file} takes"))
    return F.coalesce(_badly_framed(avro), wrong) if avro.framing == "confluent" else wrong


def _badly_framed(avro: Avro) -> Column:
    head = F.hex(F.substring("value", 1, _FRAME_BYTES))
    wrong = F.when(~head.startswith("00") | (F.length(head) < 2 * _FRAME_BYTES), F.lit("the value has no frame of a schema registry"))
    if avro.schema_id is None:
        return wrong
    number = F.conv(F.substring(head, 3, 8), 16, 10)
    return wrong.when(number != str(avro.schema_id), F.concat(F.lit(f"the schema's number is not {avro.schema_id}: "), number))


def _fields(schema: StructType, written: DataType, file: str, where: str) -> dict[str, Column]:
    if not isinstance(written, StructType):
        raise BadDeclaration(path=where, given=written.simpleString(), need=f"a record in {file}", fix="use the schema of a record")
    return {field.name: _field(field, written, file, where) for field in schema.fields}


def _field(field: StructField, written: StructType, file: str, where: str) -> Column:
    if field.name not in written.names:
        need = f"a field of {file}: {', '.join(written.names)}"
        raise BadDeclaration(path=where, given=field.name, need=need, fix="correct the name, or remove it from the app's schema")
    asked, written_type = field.dataType.simpleString(), written[field.name].dataType.simpleString()
    if asked != written_type and asked not in _WIDER.get(written_type, set()):
        need = f"{field.name} {written_type.upper()}, as in {file}"
        raise BadDeclaration(path=where, given=f"{field.name} {asked.upper()}", need=need, fix="correct the type in the app's schema")
    return F.col("_avro")["value"][field.name].cast(field.dataType)
