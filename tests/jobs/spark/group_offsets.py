"""The offsets that a consumer group has committed, as the brokers tell another client."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, TopicPartition


def committed(brokers: str, group: str, places: Sequence[tuple[str, int]]) -> list[int]:
    """The offset of each topic and partition."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group})
    try:
        return [place.offset for place in consumer.committed([TopicPartition(*place) for place in places], timeout=30)]
    finally:
        consumer.close()
