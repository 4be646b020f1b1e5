"""What state a keyed function has, as it is declared beside it.

state = {"seen": value("bigint"), "last": list_of("amount double, at timestamp"), "of": map_of("string", "bigint")}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import ParseException
from pyspark.sql.types import DataType, StructType

Kind = Literal["value", "list", "map"]


@dataclass(frozen=True)
class State:
    """One kind of state a key, with its types as Spark writes them; made by `value`, `list_of` and `map_of`."""

    kind: Kind
    of: str | DataType
    key: str | DataType = "string"


@dataclass(frozen=True)
class TypedState:
    """The same with types that were read."""

    kind: Kind
    of: DataType
    key: DataType


def value(of: str | DataType) -> State:
    """One value a key, as Flink's ValueState.

    Args:
        of: its type as Spark writes it, ``bigint``, or fields, ``n bigint, at timestamp``, for a dictionary; or such a type itself.
    """
    return State("value", of)


def list_of(of: str | DataType) -> State:
    """A list a key, as Flink's ListState; elements as in `value`."""
    return State("list", of)


def map_of(key: str | DataType, of: str | DataType) -> State:
    """A map a key, as Flink's MapState; keys and values as in `value`."""
    return State("map", of, key)


def typed(states: Mapping[str, State]) -> dict[str, TypedState]:
    """States with their types.

    Raises:
        ValueError: a name that Spark's state store would not take, or no type of Spark's.
    """
    for name in states:
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f'invalid state name "{name}": use letters, digits and underscores, starting with a letter')
    return {name: TypedState(state.kind, type_of(state.of), type_of(state.key)) for name, state in states.items()}


def type_of(text: str | DataType) -> DataType:
    """A type as Spark writes it, or a struct of fields; reading it needs a session.

    Raises:
        ValueError: no such type.
    """
    if isinstance(text, DataType):
        return text
    try:
        return DataType.fromDDL(text)
    except ParseException as error:
        raise ValueError(f'"{text}" is not a Spark type: {error.getMessage() or error}') from None


def fields_of(text: str | StructType) -> StructType:
    """Fields as Spark writes them, ``user string, n bigint``; reading them needs a session.

    Raises:
        ValueError: no fields.
    """
    found = type_of(text)
    if not isinstance(found, StructType) or not found.fields:
        raise ValueError(f'"{text}" has no named fields; use a schema such as "user string, n bigint"')
    return found
