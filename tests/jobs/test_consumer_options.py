"""What Spark's consumers get from a source's spec."""

from __future__ import annotations

from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.spec import KafkaSource


def test_a_poll_returns_many_records_and_a_fetch_without_any_is_answered_soon_unless_the_spec_says_otherwise() -> None:
    source = {"topic": "clicks", "startingOffsets": "earliest"}
    own = {
        "properties": {"fetch.max.wait.ms": 250, "fetch.min.bytes": 65536, "max.poll.records": 500},
        "isolationLevel": "read_uncommitted",
    }
    assert consumer_options(KafkaSource.model_validate(source)) == {
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.poll.records": "10000",
        "kafka.isolation.level": "read_committed",
    }
    assert consumer_options(KafkaSource.model_validate({**source, **own})) == {
        "kafka.fetch.max.wait.ms": "250",
        "kafka.fetch.min.bytes": "65536",
        "kafka.max.poll.records": "500",
        "kafka.isolation.level": "read_uncommitted",
    }
