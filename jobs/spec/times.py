"""Points in time as a spec has them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter, WithJsonSchema

# ISO 8601 with a UTC offset.
DATE_TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})$"
# The end of year 9999, the last that ISO 8601 writes with four digits.
LATEST_MS = 253_402_300_799_999
TIME_NEEDED = "a time with its offset from UTC as 2026-11-21T12:00:00+05:30, or epoch milliseconds"


def time_ms(value: object) -> object:
    """Epoch milliseconds of a time as a document has it.

    Raises:
        ValueError: it is a text and no time.
    """
    if isinstance(value, str) and not value.isdecimal():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise ValueError(TIME_NEEDED)
        return round(moment.timestamp() * 1000)
    return int(value) if isinstance(value, str) else value


# A point in time, in epoch milliseconds.
TimeMs = Annotated[
    int,
    BeforeValidator(time_ms),
    Field(ge=0, le=LATEST_MS),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time", "pattern": DATE_TIME_PATTERN},
                {"type": "integer", "minimum": 0, "maximum": LATEST_MS},
            ]
        }
    ),
]
_TIME = TypeAdapter(TimeMs)


def epoch_ms(text: str) -> int:
    """Epoch milliseconds of a valid time."""
    return _TIME.validate_python(text)
