"""``penstock feed`` on a real broker: what is written, how fast, and that the job reads it."""

from __future__ import annotations

import json
import re
import shlex
import signal
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Message

from penstock.scripts.cli.command import main
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.emulated.clicks import LIMIT_S, LINES
from tests.emulated.feeding import command, fed, values
from tests.infra.environments import written

CLICKS_APP = """
def build(job):
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(clicks.select(user="user", page="page"), "out")
    job.side_output("errors")
"""
CLICKS = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks_app
  parallelism: 2
  executor: {slots: 2, memory: 2g}
  sources: {clicks: {kafka: {topic: NAME}, time: {field: at, outOfOrderness: 10s}}}
  sinks: {out: {files: {path: clicks}}, errors: {kafka: {topic: NAME-errors}}}
  local: {input: {NAME: clicks.jsonl}}
"""


@pytest.fixture
def name() -> str:
    return f"feed-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def clicks(tmp_path: Path, name: str) -> Path:
    """A job with local input for its topic."""
    (tmp_path / "clicks_app.py").write_text(CLICKS_APP, encoding="utf-8")
    (tmp_path / "clicks.jsonl").write_text(LINES, encoding="utf-8")
    path = tmp_path / "clicks.yaml"
    path.write_text(CLICKS.replace("NAME", name), encoding="utf-8")
    return path


def by_partition(messages: list[Message]) -> dict[int | None, int]:
    found: dict[int | None, int] = {}
    for message in messages:
        found[message.partition()] = found.get(message.partition(), 0) + 1
    return found


def test_the_local_input_is_written_over_and_over_with_the_time_of_writing_and_never_faster_than_asked(
    broker: KafkaBroker, clicks: Path, name: str
) -> None:
    kafka_topics.create(broker.address, {name: 3})
    began = datetime.now(UTC)
    code, said = fed(clicks, "--brokers", broker.address, "--rate", "200", "--seconds", "1.5")
    assert code == 0, said
    assert re.search(rf"300 records written, [0-9.,]+ a second: {name} 300 ", said), said
    messages = kafka_topics.read(broker.address, name)
    assert by_partition(messages) == {0: 100, 1: 100, 2: 100}
    # A line in four is not JSON, and is written as it is.
    parsed = [json.loads(value) for value in values(messages) if value.startswith(b"{")]
    assert (len(parsed), values(messages).count(b"not JSON")) == (225, 75)
    assert {one["user"] for one in parsed} == {"ann", "bob", "monitor"}
    times = sorted(datetime.fromisoformat(one["at"]) for one in parsed)
    assert began - timedelta(seconds=1) <= times[0] <= times[-1] <= datetime.now(UTC)
    # The n-th record is due n / rate seconds after the first. One may be late on a busy machine, and none is early.
    sent = sorted(message.timestamp()[1] for message in messages)
    assert min(at - sent[0] - 1000 * number / 200 for number, at in enumerate(sent)) > -50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_feed_ends_cleanly_and_says_what_the_broker_has(
    broker: KafkaBroker, clicks: Path, name: str, number: signal.Signals
) -> None:
    kafka_topics.create(broker.address, {name: 2})
    running = command(clicks, "--brokers", broker.address, "--rate", "500")
    try:
        until_s = time.monotonic() + LIMIT_S
        while len(kafka_topics.read(broker.address, name)) < 100:
            assert running.poll() is None and time.monotonic() < until_s
        running.send_signal(number)
        _, said = running.communicate(timeout=LIMIT_S)
    finally:
        running.kill()
    assert running.returncode == 0, said
    (count,) = re.findall(r"([0-9,]+) records written", said)
    assert int(count.replace(",", "")) == len(kafka_topics.read(broker.address, name))
    assert "Traceback" not in said


def test_a_topic_that_does_not_exist_is_refused_until_it_is_applied_as_the_fix_says(broker: KafkaBroker, clicks: Path, name: str) -> None:
    code, said = fed(clicks, "--brokers", broker.address, "--rate", "10")
    assert code == 5
    assert f"error[FEED-001]: topic does not exist\n  at   topic {name}\n" in said
    assert f"fix  penstock topics apply ENV --spec {clicks}" in said
    kafka = {"kind": "external", "bootstrapServers": broker.address, "security": "plaintext", "replication": 1}
    environment = written(clicks.parent, lambda spec: spec.update(jobs=[], kafka=kafka))
    options = ("--environment", str(environment), "--rate", "100", "--seconds", "0.2")
    # The first time has not created it.
    code, said = fed(clicks, *options)
    (fix,) = re.findall(r"fix  penstock (topics apply .*)", said)
    assert (code, main([*shlex.split(fix), "--yes"])) == (5, 0)
    assert fed(clicks, *options)[0] == 0
    assert len(kafka_topics.read(broker.address, name)) == 20


def test_a_generator_that_raises_is_named_with_its_line_and_what_was_written_is_said(broker: KafkaBroker, clicks: Path, name: str) -> None:
    kafka_topics.create(broker.address, {name: 1})
    (clicks.parent / "made_clicks.py").write_text("def clicks():\n    yield {'user': 'ann'}\n    raise OSError('none left')\n", "utf-8")
    clicks.write_text(clicks.read_text("utf-8").replace("clicks.jsonl", '"made_clicks:clicks"'), "utf-8")
    code, said = fed(clicks, "--brokers", broker.address, "--rate", "10")
    assert code == 5
    assert f"error[RUN-013]: cannot load the local input\n  at   {clicks}:11" in said
    assert "none left" in said and "Traceback" not in said
    assert "1 records written" in said
    assert len(kafka_topics.read(broker.address, name)) == 1


def test_records_that_the_broker_does_not_take_end_the_feed(broker: KafkaBroker, clicks: Path, name: str) -> None:
    kafka_topics.create(broker.address, {name: 1})
    made = "from penstock import Record\n\ndef clicks():\n    yield b'{}'\n    yield Record(b'{}', partition=7)\n"
    (clicks.parent / "made_clicks.py").write_text(made, "utf-8")
    clicks.write_text(clicks.read_text("utf-8").replace("clicks.jsonl", '"made_clicks:clicks"'), "utf-8")
    code, said = fed(clicks, "--brokers", broker.address, "--rate", "10")
    assert code == 5
    assert f"error[FEED-003]: records rejected\n  at   {name}" in said
    assert len(kafka_topics.read(broker.address, name)) >= 1


def test_what_can_not_be_made_is_refused_with_its_source(broker: KafkaBroker, clicks: Path, name: str) -> None:
    kafka_topics.create(broker.address, {name: 1})
    text = clicks.read_text("utf-8")
    (clicks.parent / "v.avsc").write_text(
        '{"type": "record", "name": "v", "fields": [{"name": "user", "type": "string"}]}', encoding="utf-8"
    )
    (clicks.parent / "clicks_app.py").write_text(
        CLICKS_APP.replace(', at STRING, page STRING"', '"').replace(', page="page"', ""), encoding="utf-8"
    )
    avro = text.partition("  local:")[0].replace(
        f"topic: {name}}}, time: {{field: at, outOfOrderness: 10s}}",
        f"topic: {name}, value: avro, avro: {{schemaFile: v.avsc}}}}, time: {{kind: processing}}",
    )
    clicks.write_text(avro, encoding="utf-8")
    code, said = fed(clicks, "--brokers", broker.address, "--rate", "10")
    assert code == 2
    assert "error[FEED-002]: no records for a source" in said
    assert "value: avro" in said
    assert kafka_topics.read(broker.address, name) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rate", "0"), "a number of records per second above 0"),
        (("--rate", "many"), "a number of records per second above 0"),
        (("--rate", "1e9"), "at most 1,000,000"),
        (("--rate", "10", "--seconds", "-1"), "a number of seconds above 0"),
        (("--rate", "10"), "--environment ENV or --brokers HOST:PORT"),
        (("--rate", "10", "--brokers", "127.0.0.1:9", "--security", "iam"), "the region of the brokers"),
        (("--rate", "10", "--brokers", "127.0.0.1:9", "--security", "sasl-scram"), "--secret ARN, which has the client's credentials"),
        (("--rate", "10", "--secret", "kafka"), "is not the whole ARN of a secret"),
        ((), "--rate"),
    ],
)
def test_a_wrong_command_line_is_refused(clicks: Path, options: tuple[str, ...], words: str) -> None:
    code, said = fed(clicks, *options)
    assert (code, words in said) == (2, True), said
