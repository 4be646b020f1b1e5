"""Records that ``penstock feed`` makes from the schemas of an app: of every type, and such that the job reads them."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.testing import MicroBatches
from penstock.testing.plugin import micro_batches
from tests.emulated.feeding import fed, values

__all__ = ["micro_batches"]
APP = """
def build(job):
    orders = job.source("orders", '''user STRING NOT NULL, at STRING NOT NULL, n INT NOT NULL, total DECIMAL(9, 2) NOT NULL,
        paid BOOLEAN NOT NULL, day DATE NOT NULL, seen TIMESTAMP NOT NULL, tags ARRAY<STRING> NOT NULL,
        home STRUCT<city: STRING, zip: SMALLINT> NOT NULL,
        counts MAP<STRING, BIGINT> NOT NULL, photo BINARY NOT NULL, weight DOUBLE NOT NULL''')
    job.write(orders.select(user="user", at="at", n="n", zip="home.zip"), "out")
    lines = job.source("lines", "id BIGINT NOT NULL, at BIGINT NOT NULL, name STRING NOT NULL, ok BOOLEAN NOT NULL")
    job.write(lines.select(id="id", name="name"), "lines-out")
    words = job.source("words", "line STRING NOT NULL")
    job.write(words.select(line="line"), "words-out")
    changes = job.source("changes", "id INT NOT NULL, name STRING NOT NULL, __op STRING NOT NULL, __source_ts_ms BIGINT NOT NULL")
    job.write(changes.select(id="id", op="__op", gone="_deleted"), "changes-out")
    job.side_output("errors")
"""
SPEC = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: feeding}
spec:
  app: feeding_app
  parallelism: 2
  executor: {slots: 2, memory: 2g}
  trigger: 1s
  sources:
    orders: {kafka: {topic: NAME-orders, tombstones: delete, key: {fields: [user]}}, time: {field: at, outOfOrderness: 10s}}
    lines: {kafka: {topic: NAME-lines, value: csv, csv: {separator: ";"}}, time: {field: at, format: epoch-millis, outOfOrderness: 10s}}
    words: {kafka: {pattern: "NAME-w.*", value: text}}
    changes:
      kafka: {topic: NAME-changes, value: debezium, tombstones: delete, key: {fields: [id], format: json}}
      time: {field: __source_ts_ms, format: epoch-millis, outOfOrderness: 10s}
  sinks:
    out: {files: {path: out}}
    lines-out: {files: {path: lines}}
    words-out: {files: {path: words, bucketBy: none}}
    changes-out: {files: {path: changes}}
    errors: {kafka: {topic: NAME-errors}}
"""


@pytest.fixture(scope="session")
def penstock_session(session: SparkSession) -> SparkSession:
    """The tier's."""
    return session


@pytest.fixture
def name() -> str:
    return f"feed-{uuid.uuid4().hex[:8]}"


@pytest.mark.chaos
def test_records_of_every_type_are_made_from_the_schemas_and_parse_for_the_job(
    kafka: KafkaBroker, tmp_path: Path, name: str, micro_batches: MicroBatches
) -> None:
    (tmp_path / "feeding_app.py").write_text(APP, encoding="utf-8")
    spec = tmp_path / "feeding.yaml"
    spec.write_text(SPEC.replace("NAME", name), encoding="utf-8")
    topics = {f"{name}-orders": 2, f"{name}-lines": 1, f"{name}-words": 1, f"{name}-changes": 1}
    kafka_topics.create(kafka.address, topics)
    began = datetime.now(UTC)
    code, said = fed(spec, "--brokers", kafka.address, "--rate", "120", "--seconds", "1", "--seed", "7")
    assert code == 0, said
    read = {topic: kafka_topics.read(kafka.address, topic) for topic in topics}
    assert {topic: len(messages) for topic, messages in read.items()} == dict.fromkeys(topics, 30)
    orders = [json.loads(value) for value in values(read[f"{name}-orders"])]
    assert all(datetime.fromisoformat(one["at"]) >= began - timedelta(seconds=1) for one in orders)
    assert [message.key() for message in read[f"{name}-orders"]] == [one["user"].encode() for one in orders]
    records = {source: values(read[f"{name}-{source}"]) for source in ("orders", "lines", "words", "changes")}
    output = micro_batches(spec, app_path=[tmp_path]).run(records)
    assert (len(output["out"]), len(output["lines-out"]), len(output["words-out"]), output["errors"]) == (30, 30, 30, [])
    assert [(row["op"], row["gone"]) for row in output["changes-out"]] == [("c", False)] * 30
    # The same seed gives the same values; only their times are others.
    fed(spec, "--brokers", kafka.address, "--rate", "120", "--seconds", "1", "--seed", "7")
    again = [json.loads(value) for value in values(kafka_topics.read(kafka.address, f"{name}-orders"))]

    def without_times(some: list[dict[str, object]]) -> list[str]:
        return sorted(json.dumps({key: value for key, value in one.items() if key not in ("at", "seen", "day")}) for one in some)

    assert without_times(again) == sorted(without_times(orders) * 2)
