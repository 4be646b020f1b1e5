"""Parses event times: every format becomes a timestamp in whole milliseconds, Flink's resolution."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, IntegralType, StringType, TimestampType

from penstock.jobs.errors import BadDeclaration

# ISO 8601 as java.time.OffsetDateTime reads it: a date, a time with seconds or finer, and an offset. Spark's own cast also accepts a bare
# date, a bare year or a local time, which do not identify an instant.
ISO_8601 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$"
# Plain decimals down to nanoseconds: Spark's own cast also accepts blanks and exponents.
_DECIMAL = r"^-?[0-9]{1,20}(\.[0-9]{1,9})?$"
# The first and the last millisecond of the years 0001 to 9999, the range of Spark's timestamps. A number outside of it would overflow,
# which fails the query.
_LEAST_MS, _GREATEST_MS = -62_135_596_800_000, 253_402_300_799_999

# What a field must contain, as worded in a record's reason.
NEEDED = {
    "iso-8601": "ISO-8601 with an offset",
    "epoch-seconds": "seconds since 1970",
    "epoch-millis": "milliseconds since 1970",
    "epoch-micros": "microseconds since 1970",
}


def event_time(field: Column, kind: DataType, form: str, where: str) -> Column:
    """The instant in a field, truncated to milliseconds; null if it cannot be parsed.

    Args:
        field: the field.
        kind: its type. A TIMESTAMP, as in Avro and Parquet, already is an instant, whatever the format.
        form: ``iso-8601``, ``epoch-seconds``, ``epoch-millis`` or ``epoch-micros``; numbers may also be strings and may have fractions.
        where: the field's place, for errors.

    Raises:
        BadDeclaration: JOB-004, a type that cannot have the format.
    """
    if isinstance(kind, TimestampType):
        return _whole(F.unix_millis(field))
    if form == "iso-8601":
        if not isinstance(kind, StringType):
            raise _unfit(where, kind, "STRING, or TIMESTAMP", form)
        return from_iso_8601(field)
    if isinstance(kind, StringType):
        field = F.when(field.rlike(_DECIMAL), field)
    elif not isinstance(kind, (IntegralType, DecimalType, DoubleType, FloatType)):
        raise _unfit(where, kind, "BIGINT, DOUBLE, DECIMAL or STRING, or TIMESTAMP", form)
    if isinstance(kind, IntegralType):
        return _from_integer(field.cast("bigint"), form)
    return _from_number(field.try_cast("decimal(38,9)"), form)


def from_iso_8601(text: Column) -> Column:
    """A timestamp in whole milliseconds; null if the text is not ISO-8601 with an offset."""
    return _whole(F.unix_millis(F.when(text.rlike(ISO_8601), text.try_cast("timestamp"))))


def _from_integer(number: Column, form: str) -> Column:
    if form == "epoch-millis":
        return _whole(number)
    # The limits first: beyond them a product or a difference would overflow, which fails the query.
    if form == "epoch-seconds":
        return F.when(number.between(_LEAST_MS // 1000, _GREATEST_MS // 1000), F.timestamp_millis(number * 1000))
    # Rounded down, also before 1970.
    millis = F.call_function("div", number - F.pmod(number, F.lit(1000)), F.lit(1000))
    return F.when(number.between(_LEAST_MS * 1000, _GREATEST_MS * 1000 + 999), F.timestamp_millis(millis))


def _from_number(number: Column, form: str) -> Column:
    factor = {"epoch-seconds": F.lit(1000), "epoch-millis": F.lit(1), "epoch-micros": None}[form]
    return _whole(F.floor(number * factor if factor is not None else number / F.lit(1000)).try_cast("bigint"))


def _whole(millis: Column) -> Column:
    return F.when(millis.between(_LEAST_MS, _GREATEST_MS), F.timestamp_millis(millis))


def _unfit(where: str, kind: DataType, need: str, form: str) -> BadDeclaration:
    fix = "correct the field's type in job.source, or the format of the source's `time` in the spec"
    return BadDeclaration(path=where, given=kind.simpleString(), need=f"{need}, for an event time in the format {form}", fix=fix)
