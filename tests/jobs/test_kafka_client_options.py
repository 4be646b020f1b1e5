"""What Spark's consumers get from a source's spec, and its producers from a sink's."""

from __future__ import annotations

from penstock.jobs.sinks.topics import producer_options
from penstock.jobs.sources.kafka import consumer_options
from penstock.jobs.spec import KafkaSink, KafkaSource


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


def test_a_producer_sends_large_compressed_batches_unless_the_spec_says_otherwise() -> None:
    own = {"compression.type": "none", "batch.size": 16384, "linger.ms": 5}
    assert producer_options(KafkaSink.model_validate({"topic": "counts"})) == {
        "kafka.batch.size": "131072",
        "kafka.compression.type": "lz4",
    }
    assert producer_options(KafkaSink.model_validate({"topic": "counts", "properties": own})) == {
        "kafka.batch.size": "16384",
        "kafka.compression.type": "none",
        "kafka.linger.ms": "5",
    }
