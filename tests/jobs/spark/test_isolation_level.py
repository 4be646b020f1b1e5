"""Records of transactions: a job reads the committed ones, unless its source asks for all."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import OffsetGone
from penstock.jobs.spec import KafkaSource
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.running import Surroundings

_LIMIT_S = 120


def _producer(brokers: str) -> Producer:
    # An open transaction must outlive the test, however slow the machine.
    settings = {"transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": brokers, **settings})
    producer.init_transactions(_LIMIT_S)
    return producer


def _begun(producer: Producer, topic: str, name: str) -> None:
    """Writes one record in a transaction that stays open."""
    producer.begin_transaction()
    producer.produce(topic, json.dumps({"key": "k", "at": "2025-04-05T12:30:00Z", "name": name}), partition=0)
    assert producer.flush(_LIMIT_S) == 0


def _transactions(brokers: str, topic: str) -> Producer:
    """Committed, aborted, committed, open: the records 0, 2, 4 and 6, with a marker after each end of a transaction."""
    producer = _producer(brokers)
    _begun(producer, topic, "one")
    producer.commit_transaction(_LIMIT_S)
    _begun(producer, topic, "aborted")
    producer.abort_transaction(_LIMIT_S)
    _begun(producer, topic, "two")
    producer.commit_transaction(_LIMIT_S)
    _begun(producer, topic, "open")
    return producer


def test_a_job_reads_committed_records_and_an_open_transaction_is_no_lag(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    producer = _transactions(surroundings.brokers, job.topics["a"])
    with job.running() as running:
        running.until_read({"a": [6]})
        assert [row["name"] for row in job.rows()] == ["one", "two"]
        assert running.committed[-1]["lag"] == {job.topics["a"]: 0}
        assert running.committed[-1]["ends"] == {job.topics["a"]: {"0": 6}}
        producer.commit_transaction(_LIMIT_S)
        running.until_read({"a": [8]})
    assert [row["name"] for row in job.rows()] == ["one", "open", "two"]
    assert running.batches[-1]["totalRowsIn"] == {"a": 3}


def test_a_source_may_ask_for_uncommitted_records(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(isolationLevel="read_uncommitted"))
    producer = _transactions(surroundings.brokers, job.topics["a"])
    with job.running() as running:
        running.until_read({"a": [7]})
    producer.abort_transaction(_LIMIT_S)
    assert [row["name"] for row in job.rows()] == ["aborted", "one", "open", "two"]


@contextmanager
def _brokers(kafka: KafkaBroker, group: str) -> Iterator[Brokers]:
    brokers = Brokers(KafkaAccess(kafka.address), group)
    try:
        yield brokers
    finally:
        brokers.close()


def test_the_latest_offset_is_before_an_open_transaction_unless_its_records_are_read(kafka: KafkaBroker) -> None:
    topic = f"i{uuid.uuid4().hex[:8]}"
    kafka_topics.create(kafka.address, {topic: 1})
    producer = _transactions(kafka.address, topic)
    with _brokers(kafka, topic) as brokers:

        def start(level: str, where: str = "latest") -> int:
            source = KafkaSource.model_validate({"topic": topic, "startingOffsets": where, "isolationLevel": level})
            return brokers.starts({"a": source})["a"][topic][0]

        assert [start("read_committed"), start("read_uncommitted")] == [6, 7]
        assert start("read_committed", "2100-01-01T00:00:00Z") == 6
        # Committed by a reader of the group that reads uncommitted records.
        brokers.commit({topic: {0: 7}})
        assert start("read_committed", "committed-or-latest") == 6
        brokers.commit({topic: {0: 8}})
        with pytest.raises(OffsetGone, match="from 0 to 7"):
            start("read_committed", "committed-or-latest")
    producer.abort_transaction(_LIMIT_S)
