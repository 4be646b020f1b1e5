"""Records that Kafka has deleted before a job has read them."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.jobs.kafka.errors import RecordsGone
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.running import Surroundings, TestedJob


def _row(number: int) -> dict[str, object]:
    return {"key": f"{number}", "at": "2025-04-05T10:00:00Z", "name": f"{number}"}


def _delete_up_to(job: TestedJob, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": job.around.brokers})
    (deleted,) = admin.delete_records([TopicPartition(job.topics["a"], 0, offset)]).values()
    deleted.result()


@pytest.fixture
def job(surroundings: Surroundings) -> TestedJob:
    """A job that has read two records and is stopped."""
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.feed("a", _row(0), _row(1))
    with job.running() as running:
        running.until_read({"a": [2]})
    return job


def test_records_that_aged_out_unread_are_named_with_their_range(job: TestedJob) -> None:
    job.feed("a", *map(_row, range(2, 7)))
    _delete_up_to(job, 5)
    with pytest.raises(RecordsGone, match="the records 2 to 4 are gone; the first one is 5") as raised, job.running():
        pass
    assert raised.value.path == f"topic {job.topics['a']}, partition 0"
    job.edit(lambda spec: spec.update(upgradeMode="stateless", restartNonce=1))
    with job.running() as running:
        running.until_read({"a": [7]})
    assert [row["name"] for row in job.rows()] == ["0", "1", "5", "6"]


def test_records_that_were_read_may_go(job: TestedJob) -> None:
    _delete_up_to(job, 2)
    job.feed("a", _row(2))
    with job.running() as running:
        running.until_read({"a": [3]})
    assert [row["name"] for row in job.rows()] == ["0", "1", "2"]


def test_a_topic_that_was_created_anew_is_not_read_on(job: TestedJob) -> None:
    admin, topic = AdminClient({"bootstrap.servers": job.around.brokers}), job.topics["a"]
    (deleted,) = admin.delete_topics([topic]).values()
    deleted.result()
    kafka_topics.create(job.around.brokers, {topic: 1})
    job.feed("a", _row(0))
    with pytest.raises(RecordsGone, match="ends at 1: it is not the one that was read up to 2"), job.running():
        pass
