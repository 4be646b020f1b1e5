"""CSV values: one line with its columns in the order of the schema; quotes are escaped by doubling (RFC 4180)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.sources import extremes, instants
from penstock.jobs.sources.fields import with_fields
from penstock.jobs.spec import Csv

_CORRUPT = "_corrupt"
# Spark 4.3.0, CSVOptions.maxColumns: 20,480 by default. A line with more columns fails the parser in any mode, and the query with it.
_MAX_SEPARATORS = 20_000


def parsed(records: DataFrame, schema: StructType, csv: Csv) -> DataFrame:
    """Adds the fields and the error ``_wrong`` of their values to records.

    Args:
        records: records in the form of `penstock.jobs.sources.records`.
        schema: fields of the value; an empty column without quotes is null, a TIMESTAMP is ISO 8601 with an offset.
        csv: separator and quote.
    """
    text = F.rtrim(F.col("value").cast("string"), F.lit("\r\n"))
    lenient = StructType([*instants.fields_as_read(schema), StructField(_CORRUPT, StringType())])
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "sep": csv.separator,
        "quote": csv.quote,
        "escape": csv.quote,
    }
    separators, quotes = _count(text, csv.separator), _count(text, csv.quote)
    readable = F.is_valid_utf8(text) & (separators <= _MAX_SEPARATORS)
    ddl = lenient.toDDL()
    parsed_value = extremes.parsed(text, schema, lambda line: F.from_csv(line, ddl, options), lambda read: read[_CORRUPT].isNull())
    value = F.col("_csv")
    frame, converted = instants.with_converted(records.withColumn("_csv", F.when(readable, parsed_value)), value, schema)
    wrong = (
        F.when(~F.is_valid_utf8(text), F.lit("the value is not UTF-8"))
        .when(F.length(text) == 0, F.lit("the value is empty"))
        .when(quotes % 2 == 1, F.lit("the value is not CSV: a quote is not closed"))
        .when(
            value.isNull() | value[_CORRUPT].isNotNull() | instants.misread(value, schema, converted),
            F.lit("the value is not CSV of the source's schema"),
        )
    )
    frame = with_fields(frame, instants.fields_as_declared(value, schema, converted)).withColumn("_wrong", wrong)
    return frame.drop("_csv", *instants.columns(schema))


def _count(text: Column, sign: str) -> Column:
    return F.length(text) - F.length(F.replace(text, F.lit(sign), F.lit("")))
