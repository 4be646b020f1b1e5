"""Settings of a job's topics."""

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
    """Settings of a topic that the job reads or writes; None leaves them to the plan, the environment or the brokers.

    Args:
        partitions: partitions of the topic, as in the source or the sink.
        replication: replicas of each partition; by default the environment's.
        retention: how long records are kept, in ms, or ``forever``; by default the environment's. On a topic that is only compacted
            Kafka stores the setting without effect.
        cleanup_policy: whether old records are deleted, or all but the last of each key (compact), or both; by default deleted.
        config: settings of the topic by Kafka's names, such as ``max.message.bytes``.
    """

    partitions: Annotated[int, Field(ge=1, le=10_000)] | None = None
    replication: Annotated[int, Field(ge=1, le=15)] | None = None
    retention: Retention | None = None
    cleanup_policy: Literal["delete", "compact", "compact-delete"] | None = None
    config: dict[Annotated[str, Field(pattern=TOPIC_CONFIG_PATTERN)], str | int | float | bool] = Field(default_factory=dict)
