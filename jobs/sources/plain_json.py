"""JSON values of the common form, read by a function of Penstock's classes for Spark's JVM (``io.penstock.source.JsonObject``).

It reads what is exactly one JSON object, all of whose fields are null or of their declared types, as Spark's ``from_json`` would read it;
``from_json`` reads the rest. ``docs/decisions/0062-json-reader.md`` gives the rationale and the figures.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_TYPES = (StringType(), IntegerType(), LongType(), FloatType(), DoubleType(), BooleanType())


def read(session: SparkSession, value: Column, schema: StructType) -> Column | None:
    """The fields of a value.

    Args:
        session: Spark's session.
        value: the bytes.
        schema: of the fields.

    Returns:
        A struct of the schema whose fields may all be null; null where Spark must read the value. None where it must read every value,
        because of the schema's types.
    """
    if not _is_read(schema):
        return None
    text = _nullable(schema).json()
    # The same for the same schema: the session keeps a function for each name.
    name = f"penstock_json_{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    _class(session.sparkContext._jvm).register(session._jsparkSession, name, text)
    return F.call_function(name, value)


@lru_cache(maxsize=1)
def _class(jvm: Any) -> Any:
    """Looked up once, as `penstock.jobs.stream.leaving` does."""
    return jvm.io.penstock.source.JsonObject


def _is_read(kind: DataType) -> bool:
    match kind:
        case StructType():
            return all(_is_read(field.dataType) for field in kind.fields)
        case ArrayType():
            return _is_read(kind.elementType)
        case DecimalType():
            return True
        case _:
            return kind in _TYPES


def _nullable(kind: DataType) -> DataType:
    match kind:
        case StructType():
            return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(_nullable(kind.elementType))
        case _:
            return kind
