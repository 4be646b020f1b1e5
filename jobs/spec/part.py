"""Base classes of the document's parts: strict frozen models, and quantities."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from penstock.sizing.units import CPU_PATTERN, DURATION_PATTERN, MEMORY_PATTERN, cpu_millicores, duration_ms, memory_mib, size_bytes

# RFC 1123 labels have at most 63 characters; the driver's StatefulSet adds "-driver-0" and Spark's executors "-exec-<n>".
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$"
# Kafka: org.apache.kafka.common.internals.Topic, legal characters and at most 249 of them.
TOPIC_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
# Amazon S3 User Guide, "General purpose bucket naming rules".
BUCKET_PATTERN = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
PATH_PATTERN = r"^[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*$"


def _text(parse: Any, pattern: str, description: str, *, numbers: bool = False) -> Any:
    """Validator of a quantity and its schema for editors."""
    text: dict[str, Any] = {"type": "string", "pattern": pattern}
    schema = {"anyOf": [text, {"type": "number", "exclusiveMinimum": 0}]} if numbers else text
    return (BeforeValidator(parse), WithJsonSchema({**schema, "description": description}))


MemoryMib = Annotated[int, *_text(memory_mib, MEMORY_PATTERN, "memory in whole MiB: 2048m, 16g, 1.5Gi")]
SizeBytes = Annotated[int, *_text(size_bytes, MEMORY_PATTERN, "a size: 64k, 128Mi, 1g")]
Millicores = Annotated[int, *_text(cpu_millicores, CPU_PATTERN, "CPU: 4, 0.5, 500m", numbers=True)]
DurationMs = Annotated[int, *_text(duration_ms, DURATION_PATTERN, "a duration: 500ms, 10s, 2m, 1h, 7d")]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Topic = Annotated[str, Field(pattern=TOPIC_PATTERN)]
BucketName = Annotated[str, Field(pattern=BUCKET_PATTERN)]


def _zone(value: str) -> str:
    if value not in available_timezones():
        raise ValueError("a tz database time zone, such as Asia/Kolkata")
    return value


Zone = Annotated[str, AfterValidator(_zone)]


class Part(BaseModel):
    """A mapping of the document: no unknown fields, no conversions, immutable."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)


def exactly_one(**values: object) -> None:
    """Raises ValueError unless one of the fields is set."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) != 1:
        none = "neither" if len(values) == 2 else "none"
        raise ValueError(f"exactly one of {' and '.join(values)}; {' and '.join(given) or none} is given")
