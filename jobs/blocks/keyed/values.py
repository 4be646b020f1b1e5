"""Conversion of values between Spark, a keyed function and its state.

A function sees plain Python: structs and maps as dictionaries, arrays as lists, timestamps in UTC. Spark returns state with timestamps
in the machine's time zone, in which an hour is ambiguous once a year; so they are stored as microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    MapType,
    StructField,
    StructType,
    TimestampType,
)

Convert = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def stored_type(of: DataType) -> DataType:
    """A type's representation in the state."""
    match of:
        case TimestampType():
            return LongType()
        case ArrayType():
            return ArrayType(stored_type(of.elementType), of.containsNull)
        case MapType():
            return MapType(stored_type(of.keyType), stored_type(of.valueType), of.valueContainsNull)
        case StructType():
            return StructType([StructField(field.name, stored_type(field.dataType), nullable=True) for field in of.fields])
        case _:
            return of


def to_stored(of: DataType) -> Convert:
    """Converts a function's value to its stored form; null stays null."""
    match of:
        case TimestampType():
            return _nullable(microseconds)
        case ArrayType():
            inner = to_stored(of.elementType)
            return _nullable(lambda items: [inner(item) for item in items])
        case MapType():
            key, value = to_stored(of.keyType), to_stored(of.valueType)
            return _nullable(lambda items: {key(k): value(v) for k, v in dict(items).items()})
        case StructType():
            fields = [(field.name, to_stored(field.dataType)) for field in of.fields]
            return _nullable(lambda struct: tuple(inner(_member(struct, name)) for name, inner in fields))
        case _:
            return as_is


def from_stored(of: DataType) -> Convert:
    """Converts a stored value to a function's value."""
    match of:
        case TimestampType():
            return _nullable(moment)
        case BinaryType():
            return _nullable(bytes)
        case ArrayType():
            inner = from_stored(of.elementType)
            return _nullable(lambda items: [inner(item) for item in items])
        case MapType():
            key, value = from_stored(of.keyType), from_stored(of.valueType)
            return _nullable(lambda items: {key(k): value(v) for k, v in items.items()})
        case StructType():
            fields = [(field.name, from_stored(field.dataType)) for field in of.fields]
            return _nullable(lambda struct: {name: inner(value) for (name, inner), value in zip(fields, struct, strict=True)})
        case _:
            return as_is


def from_arrow(of: DataType) -> Convert:
    """Converts an Arrow value to a function's value: Arrow's maps are lists of pairs."""
    match of:
        case ArrayType():
            inner = from_arrow(of.elementType)
            return as_is if inner is as_is else _nullable(lambda items: [inner(item) for item in items])
        case MapType():
            key, value = from_arrow(of.keyType), from_arrow(of.valueType)
            return _nullable(lambda items: {key(k): value(v) for k, v in items})
        case StructType():
            fields = {field.name: from_arrow(field.dataType) for field in of.fields}
            if all(inner is as_is for inner in fields.values()):
                return as_is
            return _nullable(lambda struct: {name: inner(struct[name]) for name, inner in fields.items()})
        case _:
            return as_is


def to_arrow(of: DataType) -> Convert:
    """Converts a function's value to an Arrow value."""
    match of:
        case TimestampType():
            return _nullable(lambda value: value if value.tzinfo else value.replace(tzinfo=UTC))
        case ArrayType():
            inner = to_arrow(of.elementType)
            return _nullable(lambda items: [inner(item) for item in items])
        case MapType():
            key, value = to_arrow(of.keyType), to_arrow(of.valueType)
            return _nullable(lambda items: [(key(k), value(v)) for k, v in dict(items).items()])
        case StructType():
            fields = [(field.name, to_arrow(field.dataType)) for field in of.fields]
            return _nullable(lambda struct: {name: inner(_member(struct, name)) for name, inner in fields})
        case _:
            return as_is


def microseconds(value: datetime) -> int:
    """Since the epoch; UTC if there is no time zone."""
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def milliseconds(value: datetime) -> int:
    """Since the epoch, truncated."""
    return microseconds(value) // 1000


def moment(since_epoch_us: int) -> datetime:
    """The instant of this many microseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(microseconds=since_epoch_us)


def as_is(value: Any) -> Any:
    """The value itself, where there is nothing to convert."""
    return value


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _member(struct: Any, name: str) -> Any:
    """A field of a mapping, which may be missing, or of a row."""
    return struct.get(name) if isinstance(struct, Mapping) else struct[name]
