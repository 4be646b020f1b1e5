"""From where a job reads its topics that starts from a savepoint and whose brokers are not those that the savepoint has the offsets of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, WithJsonSchema

from penstock.jobs.spec.part import TOPIC_PATTERN, Topic
from penstock.jobs.spec.times import DATE_TIME_PATTERN, LATEST_MS, TIME_NEEDED, TimeMs

# The time of the savepoint's last micro-batch, of each query its own.
SAVEPOINT_TIME = "savepointTime"
# Source: Spark 4.3, Structured Streaming + Kafka Integration Guide, startingOffsets: -2 is the first offset, -1 the one after the last.
EARLIEST, LATEST = -2, -1
# Topic -> partition -> offset.
GivenOffsets = dict[Topic, dict[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=EARLIEST)]]]
_GIVEN = TypeAdapter(GivenOffsets)
_TIME = TypeAdapter(TimeMs)


def given_offsets(value: object) -> GivenOffsets:
    """Offsets as Spark's ``startingOffsets`` has them.

    Args:
        value: of a document.

    Raises:
        ValueError: it is something else.
    """
    try:
        given = _GIVEN.validate_python(value, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise ValueError(f"topic -> partition -> offset{f'; {where}' if where else ''}: {first['msg']}") from None
    if not given:
        raise ValueError("topic -> partition -> offset; there is no topic")
    return given


def _initial_offsets(value: object) -> object:
    if isinstance(value, Mapping):
        return given_offsets(value)
    if value == SAVEPOINT_TIME:
        return value
    try:
        # Strictly, so that true is no time.
        return _TIME.validate_python(value, strict=True)
    except ValidationError:
        raise ValueError(f"{SAVEPOINT_TIME}, {TIME_NEEDED}, or topic -> partition -> offset") from None


# By time, in epoch milliseconds, or given.
InitialOffsets = Annotated[
    Literal["savepointTime"] | int | dict[str, dict[int, int]],
    BeforeValidator(_initial_offsets),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": SAVEPOINT_TIME},
                {"type": "string", "format": "date-time", "pattern": DATE_TIME_PATTERN},
                {"type": "integer", "minimum": 0, "maximum": LATEST_MS},
                {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"pattern": TOPIC_PATTERN},
                    "additionalProperties": {
                        "type": "object",
                        "propertyNames": {"pattern": "^[0-9]+$"},
                        "additionalProperties": {"type": "integer", "minimum": EARLIEST},
                    },
                },
            ]
        }
    ),
]


def parsed(value: object) -> InitialOffsets:
    """What a command line gives, as a spec would.

    Raises:
        ValueError: it is something else.
    """
    return cast("InitialOffsets", _initial_offsets(value))
