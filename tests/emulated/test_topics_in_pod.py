"""What the pod of ``penstock topics --through cluster`` does, as a process of its own, on a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.scripts.layout import ROOT
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import WantedTopic, changes
from penstock.scripts.topics.in_pod import MESSAGE_LIMIT, Answer, Request


def _answered(folder: Path, request: Request) -> Answer:
    """The pod's answer, of its log and of its termination message."""
    (folder / "request.json").write_text(request.model_dump_json())
    message = folder / "message"
    message.write_text("")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PENSTOCK_TERMINATION_FILE": str(message)}
    command = [sys.executable, "-m", "penstock.scripts.topics.in_pod", str(folder / "request.json")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert message.read_text() == (last if len(last) <= MESSAGE_LIMIT else "")
    return Answer.model_validate_json(last)


def _request(broker: KafkaBroker, *wanted: WantedTopic) -> Request:
    return Request(address=broker.address, security="plaintext", wanted=wanted)


def test_it_plans_applies_and_refuses_a_plan_of_before(broker: KafkaBroker, tmp_path: Path) -> None:
    topic = WantedTopic(f"p{uuid.uuid4().hex[:8]}", 2, config={"retention.ms": "3600000"})
    request = _request(broker, topic)
    assert _answered(tmp_path, request) == Answer()
    planned = changes([topic], {})
    agreed = request.model_copy(update={"planned": planned})
    assert _answered(tmp_path, agreed) == Answer()
    made = TopicBrokers(KafkaAccess(broker.address)).existing([topic.name])[topic.name]
    assert (made.partitions, made.config["retention.ms"]) == (2, "3600000")
    known = _answered(tmp_path, request).existing[topic.name]
    assert (known.partitions, known.config) == (2, {"retention.ms": "3600000", "cleanup.policy": "delete"})
    (outdated,) = _answered(tmp_path, agreed).errors
    assert outdated["code"] == "TOP-013"


def test_refusals_of_the_brokers_and_a_broker_that_is_away_are_part_of_the_answer(broker: KafkaBroker, tmp_path: Path) -> None:
    (refused,) = _answered(tmp_path, _request(broker, WantedTopic("p-refused", 1, replication=3))).refusals
    assert (refused["code"], refused["path"]) == ("TOP-003", "create p-refused")
    (unknown,) = _answered(tmp_path, _request(broker, WantedTopic("p-unknown", 1, config={"retenton.ms": "5"}))).refusals
    assert "retenton.ms" in unknown["given"]


@pytest.mark.parametrize("topics", [100])
def test_an_answer_that_is_too_long_for_a_termination_message_is_in_the_log(broker: KafkaBroker, tmp_path: Path, topics: int) -> None:
    wanted = [WantedTopic(f"p-many-{number}", 1, replication=3) for number in range(topics)]
    (refused,) = _answered(tmp_path, _request(broker, *wanted)).refusals
    assert len(refused["path"]) > 1000


def test_the_request_has_no_secret() -> None:
    request = Request(address="b:9094", security="mtls", secret="arn", wanted=())
    given = {name for name, value in json.loads(request.model_dump_json()).items() if value}
    assert given == {"address", "security", "secret"}
