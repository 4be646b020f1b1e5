"""The state of a keyed function, as declared beside it.

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
    """One kind of state per key, with its types as Spark DDL; created by `value`, `list_of` and `map_of`."""

    kind: Kind
    of: str | DataType
    key: str | DataType = "string"


@dataclass(frozen=True)
class TypedState:
    """The same with parsed types."""

    kind: Kind
    of: DataType
    key: DataType

    @property
    def described(self) -> str:
        """Kind and types, such as ``map<string,bigint>``."""
        types = [self.key, self.of] if self.kind == "map" else [self.of]
        return f"{self.kind}<{','.join(type.simpleString() for type in types)}>"


def value(of: str | DataType) -> State:
    """One value per key, like Flink's ValueState.

    Args:
        of: its type as Spark DDL, ``bigint``, or fields, ``n bigint, at timestamp``, for a dictionary; or a Spark type.
    """
    return State("value", of)


def list_of(of: str | DataType) -> State:
    """A list per key, like Flink's ListState; elements as in `value`."""
    return State("list", of)


def map_of(key: str | DataType, of: str | DataType) -> State:
    """A map per key, like Flink's MapState; keys and values as in `value`."""
    return State("map", of, key)


def typed(states: Mapping[str, State]) -> dict[str, TypedState]:
    """States with their types.

    Raises:
        ValueError: a name that Spark's state store would reject, or an invalid type.
    """
    for name in states:
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f'invalid state name "{name}": use letters, digits and underscores, starting with a letter')
    return {name: TypedState(state.kind, type_of(state.of), type_of(state.key)) for name, state in states.items()}


def type_of(text: str | DataType) -> DataType:
    """Parses a type or a struct of fields from Spark DDL; requires a session.

    Raises:
        ValueError: an invalid type.
    """
    if isinstance(text, DataType):
        return text
    try:
        return DataType.fromDDL(text)
    except ParseException as error:
        raise ValueError(f'"{text}" is not a Spark type: {error.getMessage() or error}') from None


def fields_of(text: str | StructType) -> StructType:
    """Parses fields from Spark DDL, ``user string, n bigint``; requires a session.

    Raises:
        ValueError: no fields.
    """
    parsed = type_of(text)
    if not isinstance(parsed, StructType) or not parsed.fields:
        raise ValueError(f'"{text}" has no named fields; use a schema such as "user string, n bigint"')
    return parsed
