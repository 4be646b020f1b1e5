"""What the topics of a job shall be like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from penstock.jobs.spec.part import Part
from penstock.sizing.units import DURATION_PATTERN, duration_ms

# Kafka: org.apache.kafka.common.config.TopicConfig, names of lower-case words with dots.
TOPIC_CONFIG_PATTERN = r"^[a-z]+([.-][a-z]+)*$"


def _retention(value: object) -> object:
    return value if value == "forever" else duration_ms(value)


Retention = Annotated[
    int | Literal["forever"],
    BeforeValidator(_retention),
    WithJsonSchema({"anyOf": [{"const": "forever"}, {"type": "string", "pattern": DURATION_PATTERN}]}),
]


class TopicSettings(Part):
    """What a topic that the job reads or writes shall have; what is None is left to the plan, the environment or the brokers.

    Args:
        partitions: of the topic, as in the source or the sink.
        replication: copies of each partition; by default the environment's.
        retention: how long records stay, in ms, or ``forever``; by default the environment's. Kafka keeps it on a topic that is only
            compacted, without effect there.
        cleanup_policy: whether old records are deleted, or each key's but the last (compact), or both; by default deleted.
        config: settings of the topic by Kafka's own names, as ``max.message.bytes``.
    """

    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    replication: Annotated[int, Field(ge=1, le=15)] | None = None
    retention: Retention | None = None
    cleanup_policy: Literal["delete", "compact", "compact-delete"] | None = None
    config: dict[Annotated[str, Field(pattern=TOPIC_CONFIG_PATTERN)], str | int | float | bool] = Field(default_factory=dict)
