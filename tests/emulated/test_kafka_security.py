"""Clients that are let in by a real broker: over TLS, with a token, and MSK's own way; and those that are not."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.errors import BrokersUnreachable
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.spec import KafkaSource
from penstock.scripts import layout
from penstock.scripts.local import kafka_topics
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import WantedTopic, changes
from penstock.scripts.topics.errors import BrokersNotReached
from tests.emulated.secured_broker import REGION, SecuredBroker
from tests.jobs.presigned import signature

KEY, SECRET = "AKIAEXAMPLE", "the secret of a test"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = SecuredBroker(tmp_path_factory.mktemp("kafka"))
    with secured:
        kafka_topics.create(secured.address, {"events": 3})
        yield secured


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


def _partitions(access: KafkaAccess) -> tuple[dict[str, int], dict[int, int]]:
    """What a driver asks before it starts."""
    asked = Brokers(access, group="penstock.test")
    try:
        return asked.partitions(["events"]), asked.starting_offsets(KafkaSource.model_validate({"topic": "events"}), "events", 3)
    finally:
        asked.close()


EXPECTED = ({"events": 3}, {0: 0, 1: 0, 2: 0})


def test_a_driver_reads_its_topics_over_tls(broker: SecuredBroker) -> None:
    assert _partitions(KafkaAccess(broker.tls, "tls", ca_file=str(broker.ca_file))) == EXPECTED


def test_brokers_with_an_untrusted_certificate_are_rejected(broker: SecuredBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.kafka.brokers.TIMEOUT_S", 3.0)
    with pytest.raises(BrokersUnreachable):
        _partitions(KafkaAccess(broker.tls, "tls"))
    with pytest.raises(BrokersNotReached) as raised:
        TopicBrokers(KafkaAccess(broker.tls, "tls"), answer_s=3.0).existing(["events"])
    assert "certificate" in raised.value.given


def test_a_driver_is_let_in_by_the_token_that_it_signs(broker: SecuredBroker, somebody: None) -> None:
    before = len(broker.sent())
    assert _partitions(KafkaAccess(broker.tokens, "iam", REGION, str(broker.ca_file))) == EXPECTED
    sent = broker.sent()[before:]
    assert {mechanism for mechanism, _ in sent} == {"OAUTHBEARER"}
    for _, url in sent:
        query = parse_qs(urlparse(url).query)
        assert query["X-Amz-Credential"][0].startswith(f"{KEY}/")
        assert query["X-Amz-Signature"] == [signature(url, SECRET)]


def test_authorized_clients_create_topics(broker: SecuredBroker, somebody: None) -> None:
    brokers = TopicBrokers(KafkaAccess(broker.tokens, "iam", REGION, str(broker.ca_file)))
    (made,) = changes([WantedTopic("made-with-a-token", 2)], brokers.existing(["made-with-a-token"]))
    assert brokers.refusals([made]) == []
    brokers.do(made, "create")
    assert brokers.existing(["made-with-a-token"])["made-with-a-token"].partitions == 2


def test_who_signs_nothing_is_not_let_in(broker: SecuredBroker) -> None:
    with pytest.raises(BrokersNotReached):
        TopicBrokers(KafkaAccess(broker.tokens, "tls", ca_file=str(broker.ca_file)), answer_s=3.0).existing(["events"])


def _asked_in_java(broker: SecuredBroker, access: KafkaAccess, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Java client with Spark's jars and exactly the options of its Kafka source."""
    import pyspark

    jackson = sorted((Path(pyspark.__file__).parent / "jars").glob("jackson-*.jar"))
    logging = sorted((Path(pyspark.__file__).parent / "jars").glob("slf4j-api*.jar"))
    classpath = os.pathsep.join(str(path) for path in [*layout.spark_jars(), *jackson, *logging, broker.classes])
    options = [f"{name.removeprefix('kafka.')}={value}" for name, value in access.spark_options().items()]
    command = ["java", f"-Djdk.net.hosts.file={broker.hosts_file}", "-cp", classpath, "AskCluster", *options]
    own = {"PATH": os.environ["PATH"], "AWS_EC2_METADATA_DISABLED": "true", **variables}
    return subprocess.run(command, env=own, capture_output=True, text=True, timeout=120, check=False)


def test_sparks_client_reads_over_tls(broker: SecuredBroker) -> None:
    asked = _asked_in_java(broker, KafkaAccess(broker.tls, "tls", ca_file=str(broker.ca_file)))
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr


def test_sparks_client_signs_in_msks_own_way_with_the_jars_of_the_image(broker: SecuredBroker) -> None:
    before = len(broker.sent())
    access = KafkaAccess(broker.java, "iam", REGION, str(broker.ca_file))
    asked = _asked_in_java(broker, access, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    assert (asked.returncode, asked.stdout) == (0, "brokers 1\n"), asked.stderr
    sent = broker.sent()[before:]
    assert {mechanism for mechanism, _ in sent} == {"AWS_MSK_IAM"}
    payload = json.loads(sent[0][1])
    assert (payload["version"], payload["action"]) == ("2020_10_22", "kafka-cluster:Connect")
    scope = payload["x-amz-credential"].split("/")
    assert (scope[0], scope[2:]) == (KEY, [REGION, "kafka-cluster", "aws4_request"])


def test_sparks_client_without_credentials_is_not_let_in(broker: SecuredBroker, tmp_path: Path) -> None:
    access = KafkaAccess(broker.java, "iam", REGION, str(broker.ca_file))
    asked = _asked_in_java(broker, access, HOME=str(tmp_path), AWS_CONFIG_FILE=str(tmp_path / "none"))
    assert asked.returncode != 0
    assert "credentials" in asked.stderr.lower()
