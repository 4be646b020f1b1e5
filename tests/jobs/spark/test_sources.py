"""Sources through the driver: each record once, in order, from the start that the spec defines, across restarts."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.driver.errors import SocketHasNoPast
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import NotCommitted, OffsetGone, TopicNotFound
from penstock.jobs.spec import KafkaSource
from penstock.jobs.spec.errors import AvroSchemaUnread
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.group_offsets import committed
from tests.jobs.spark.running import OUTPUT, Surroundings, TestedJob


def _write(brokers: str, topic: str, *records: dict[str, Any]) -> None:
    """Writes records one after another, each with the arguments of `Producer.produce`."""
    producer = Producer({"bootstrap.servers": brokers})
    for record in records:
        producer.produce(topic, **{"partition": 0, **record})
        producer.flush()


def _of_two_topics(surroundings: Surroundings) -> tuple[TestedJob, str, str]:
    job = surroundings.job("tests.jobs.spark.apps.customers", sources={"a": 1})
    one, other = job.topics["a"], f"{job.name}-b"
    kafka_topics.create(surroundings.brokers, {other: 2})
    kafka = {"topics": [one, other], "startingOffsets": "earliest", "tombstones": "delete", "key": {"fields": ["id"]}}
    more = {"commitOffsets": True, "minPartitions": 4, "maxOffsetsPerTrigger": 100}
    return job.edit(lambda spec: spec["sources"]["a"].update(kafka=kafka | more)), one, other


def test_several_topics_are_one_input_and_a_tombstone_deletes(surroundings: Surroundings) -> None:
    job, one, other = _of_two_topics(surroundings)
    at = "2025-04-05T12:30:00Z"
    headers = [("trace", b"t1"), ("more", b"t2")]
    _write(surroundings.brokers, one, {"key": b"1", "value": json.dumps({"id": 1, "at": at, "name": "x"}), "headers": headers})
    _write(surroundings.brokers, one, {"key": b"1", "value": None}, {"key": b"no number", "value": None}, {"value": b"{}"})
    _write(surroundings.brokers, other, {"key": b"2", "value": json.dumps({"id": 2, "at": at, "name": "y"}), "partition": 1})
    with job.running() as running:
        (batch, *_) = _until(running, {(one, 0): 4, (other, 1): 1})
        # A tombstone's time is the broker's, of today: it must not advance the watermark.
        assert batch["watermarks"]["inForceMs"] is None, "a partition without rows holds the watermark back"
        # An additional partition of one topic: the query is planned again, and existing splits do not change.
        admin = AdminClient({"bootstrap.servers": surroundings.brokers})
        admin.create_partitions([NewPartitions(one, 2)])[one].result()
        _write(surroundings.brokers, one, {"key": b"3", "value": json.dumps({"id": 3, "at": at, "name": "z"}), "partition": 1})
        _write(surroundings.brokers, other, {"key": b"2", "value": json.dumps({"id": 2, "at": at, "name": "q"})})
        _until(running, {(one, 0): 4, (one, 1): 1, (other, 0): 1, (other, 1): 1})
        last = running.batches[-1]
    assert last["watermarks"]["inForceMs"] == 1743856190000, "12:30:00 less the bound, once all splits have spoken"
    rows = {row["place"]: (row["id"], row.get("name"), row["gone"], row.get("header"), row["key"]) for row in job.rows()}
    assert rows == {
        "a/0/0": (1, "x", False, "t1", "1"),
        "a/0/1": (1, None, True, None, "1"),
        "b/1/0": (2, "y", False, None, "2"),
        "a/1/0": (3, "z", False, None, "3"),
        "b/0/0": (2, "q", False, None, "2"),
    }
    assert {(r["topic"], r["offset"], r["reason"]) for r in job.side_outputs("errors")} == {
        (one, 2, "the key has no id of type int"),
        (one, 3, "id is missing"),
    }
    assert last["totalTags"] == {"data": 5, "quarantined": 2}
    places = [(one, 0), (one, 1), (other, 0), (other, 1)]
    assert committed(surroundings.brokers, f"penstock.{job.name}", places) == [4, 1, 1, 1]


def _until(running: Any, ends: dict[tuple[str, int], int]) -> list[dict[str, Any]]:
    """Waits until topics are read that are unknown to the job's `until_read`; returns the micro-batches since."""
    begun = len(running.batches)
    while True:
        offsets = running.wait("committed")["ends"]
        if all(offsets.get(topic, {}).get(str(partition), 0) >= end for (topic, partition), end in ends.items()):
            return list(running.batches[begun:])


@contextmanager
def _brokers(kafka: KafkaBroker, group: str) -> Iterator[Brokers]:
    brokers = Brokers(KafkaAccess(kafka.address), group)
    try:
        yield brokers
    finally:
        brokers.close()


def _source(**fields: Any) -> KafkaSource:
    return KafkaSource.model_validate(fields)


def test_a_job_without_a_checkpoint_starts_where_its_spec_says(kafka: KafkaBroker) -> None:
    name = f"s{uuid.uuid4().hex[:8]}"
    kafka_topics.create(kafka.address, {name: 2})
    times = [1743856000000, 1743856060000, 1743856120000]
    _write(kafka.address, name, *({"value": b"{}", "timestamp": at} for at in times))
    with _brokers(kafka, name) as brokers:

        def start(where: str, *, begun: bool = False) -> dict[int, int]:
            return brokers.starts({"a": _source(topic=name, startingOffsets=where)}, begun=begun)["a"][name]

        assert start("earliest") == {0: 0, 1: 0}
        assert start("latest") == {0: 3, 1: 0}
        assert start("committed-or-earliest") == {0: 0, 1: 0}
        assert start("committed-or-latest") == {0: 3, 1: 0}
        # The first records that are not older; past the last one, and in an empty partition, the next record.
        assert start("2025-04-05T17:57:40+05:30") == {0: 1, 1: 0}
        assert start("2025-04-05T12:27:40.001+00:00") == {0: 2, 1: 0}
        assert start("2025-04-06T00:00:00+00:00") == {0: 3, 1: 0}
        assert start("1743856060000") == {0: 1, 1: 0}
        brokers.commit({name: {0: 2}})
        assert start("committed-or-latest") == {0: 2, 1: 0}
        assert start("committed-or-earliest") == {0: 2, 1: 0}
        brokers.commit({name: {0: 9}})
        with pytest.raises(OffsetGone, match="from 0 to 3"):
            start("committed-or-latest")
        assert start("committed-or-latest", begun=True) == {0: 3, 1: 0}, "a checkpoint goes before the group"


def test_a_job_takes_over_where_another_consumer_has_stopped(kafka: KafkaBroker) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    kafka_topics.create(kafka.address, {name: 2})
    _write(kafka.address, name, {"value": b"{}"}, {"value": b"{}"}, {"value": b"{}", "partition": 1})
    with _brokers(kafka, f"{name}.own") as brokers, _brokers(kafka, f"{name}.old") as old:

        def start(where: str, group: str | None = f"{name}.old", *, begun: bool = False) -> dict[int, int]:
            source = _source(topic=name, startingOffsets=where, startingGroup=group)
            return brokers.starts({"a": source}, begun=begun)["a"][name]

        with pytest.raises(NotCommitted, match="none of partitions 0, 1") as missing:
            start("committed")
        assert f"the group {name}.old has committed" in missing.value.render()
        old.commit({name: {0: 1}})
        with pytest.raises(NotCommitted, match="none of partition 1"):
            start("committed")
        assert start("committed-or-latest") == {0: 1, 1: 1}
        assert start("committed-or-earliest") == {0: 1, 1: 0}
        old.commit({name: {1: 1}})
        assert start("committed") == {0: 1, 1: 1}
        assert start("committed", begun=True) == {0: 0, 1: 0}, "a checkpoint goes before the group"
        with pytest.raises(NotCommitted, match="none of partitions 0, 1"):
            start("committed", None)
        old.commit({name: {0: 9}})
        with pytest.raises(OffsetGone, match="from 0 to 2"):
            start("committed")


def test_a_job_starts_at_the_offsets_of_the_consumer_that_it_takes_over_from(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    topic, old, own = job.topics["a"], f"ledger-{job.name}", f"penstock.{job.name}"
    job.feed("a", *({"key": "k", "at": "2025-04-05T12:30:00Z", "name": name} for name in ("one", "two", "three")))
    consumer = Consumer({"bootstrap.servers": surroundings.brokers, "group.id": old, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    kafka = {"startingOffsets": "committed", "startingGroup": old, "commitOffsets": True}
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(kafka))
    with job.running() as running:
        assert running.reading["offsets"] == {"a": {topic: {"0": 2}}}
        running.until_read({"a": [3]})
    assert [row["name"] for row in job.rows()] == ["three"]
    # The other consumer can go back to where it was.
    assert [committed(surroundings.brokers, group, [(topic, 0)]) for group in (old, own)] == [[2], [3]]


def test_a_pattern_selects_the_existing_topics(kafka: KafkaBroker) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    kafka_topics.create(kafka.address, {f"{name}-b": 1, f"{name}-a": 2, f"{name}-a-errors": 1})
    with _brokers(kafka, name) as brokers:
        starts = brokers.starts({"a": _source(pattern=f"{name}-[ab]", startingOffsets="earliest")})
        assert starts == {"a": {f"{name}-a": {0: 0, 1: 0}, f"{name}-b": {0: 0}}}
        with pytest.raises(TopicNotFound) as unfit:
            brokers.starts({"a": _source(pattern=f"{name}-[xy]")})
        assert "correct the pattern" in unfit.value.render()
        with pytest.raises(TopicNotFound) as missing:
            brokers.starts({"a": _source(topics=[f"{name}-a", f"{name}-aa"])})
        assert f"did you mean {name}-a?" in missing.value.render()


def test_files_are_read_once_each_line_a_record(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    folder = f"in/{job.name}"
    clock = {"field": "at"}
    job.edit(lambda spec: spec.update(sources={"a": {"files": {"path": folder}, "time": clock}}))

    def put(name: str, *lines: bytes) -> None:
        surroundings.s3.put_object(Bucket=OUTPUT, Key=f"{folder}/{name}", Body=b"\n".join(lines))

    row = '{"key": "k", "at": "2025-04-05T12:30:%02dZ", "name": "%s"}'
    put("dt=2025-04-05/one.jsonl", (row % (10, "one")).encode(), b"", b"broken", (row % (20, "two")).encode(), b"")
    put("_hidden.jsonl", b"not read")
    with job.running() as running:
        running.wait("idle")
    put("two.jsonl", (row % (9, "late")).encode(), (row % (30, "three")).encode())
    with job.running() as running:
        running.wait("idle")
        last = running.batches[-1]
    assert [one["name"] for one in job.rows()] == ["one", "three", "two"]
    assert last["totalTags"] == {"data": 3, "quarantined": 1, "late": 1}
    assert last["totalRowsIn"] == {"a": 5}
    (bad,) = job.side_outputs("errors")
    assert bad["value"] == "broken" and bad["topic"] == f"s3a://{OUTPUT}/{folder}/dt=2025-04-05/one.jsonl"


class _Server:
    """A TCP server that sends given lines to all connected clients."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._client: socket.socket | None = None
        self._connected = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        self._client, _ = self._listener.accept()
        self._connected.set()

    def send(self, data: bytes) -> None:
        assert self._connected.wait(60) and self._client is not None
        self._client.sendall(data)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._listener.close()


def test_a_socket_gives_lines(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.lines", sources={"a": 1})
    job.edit(lambda spec: spec.update(sources={"a": {"socket": {"connection": "lines"}}}))
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
    with _server(job) as server, job.running() as running:
        server.send(b"one\ntwo\n")
        _rows_in(running, 2)
        server.send(b"three\n")
        _rows_in(running, 3)
    assert [row["line"] for row in job.rows()] == ["one", "three", "two"]
    # A server does not repeat what it has sent, so a job can't resume from a checkpoint.
    with pytest.raises(SocketHasNoPast), job.running():
        pass


@contextmanager
def _server(job: TestedJob) -> Iterator[_Server]:
    server = _Server()
    job.connections["lines"] = server.url
    try:
        yield server
    finally:
        server.close()


def _rows_in(running: Any, rows: int) -> None:
    """Waits until this many rows have been read in total."""
    deadline = time.monotonic() + 60
    while not running.batches or running.batches[-1]["totalRowsIn"]["a"] < rows:
        assert time.monotonic() < deadline
        running.wait("committed")


def test_avro_is_read_by_the_schema_beside_the_spec(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.avro_clicks", sources={"a": 1})
    kafka = {"topic": job.topics["a"], "startingOffsets": "earliest", "value": "avro", "avro": {"schemaFile": "click.avsc"}}
    job.edit(lambda spec: spec.update(sources={"a": {"kafka": kafka}}))
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
    with pytest.raises(AvroSchemaUnread), job.running():
        pass
    fields = [{"name": "user", "type": "string"}, {"name": "n", "type": "int"}]
    schema = {"type": "record", "name": "Click", "fields": fields}
    (surroundings.folder / "click.avsc").write_text(json.dumps(schema), encoding="utf-8")
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), {"user": "u", "n": 7})
    job.feed("a", written.getvalue(), b"\x02")
    with job.running() as running:
        running.until_read({"a": [2]})
    assert job.rows() == [{"user": "u", "n": 7}]
    assert [(bad["offset"], bad["reason"]) for bad in job.side_outputs("errors")] == [(1, "the value is not Avro of click.avsc")]
