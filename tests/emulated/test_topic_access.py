"""Topics that the brokers hide from a client, by Kafka's own authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.infra.job_rights import Brokers as BrokerArns
from penstock.infra.job_rights import Buckets, statements
from penstock.jobs.configuration.kafka_access import Credentials, KafkaAccess
from penstock.jobs.kafka.brokers import Brokers
from penstock.jobs.kafka.errors import TopicAccessDenied, TopicNotFound
from penstock.jobs.kafka.heard import Heard
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.kafka.topic_access import STATEMENTS, hidden
from penstock.jobs.sinks.topics import admin_of, cluster_with
from penstock.jobs.spec import load
from penstock.scripts import layout
from penstock.scripts.local import kafka_topics
from penstock.sizing.errors import Faults
from tests.emulated.secured_broker import PASSWORD, USER
from tests.restricting_broker import RestrictingBroker

CLUSTER = "arn:aws:kafka:us-east-1:111122223333:{}/the-brokers/uuid-1"
ALLOWED = {"Action": ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"], "Resource": [f"{CLUSTER.format('topic')}/seen"]}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAccess]:
    """To brokers with the topics seen and hidden, of which the client may read the first, and describe one that is missing."""
    with RestrictingBroker(tmp_path_factory.mktemp("kafka")) as broker:
        broker.add_user()
        kafka_topics.create(broker.address, {"seen": 2, "hidden": 1})
        broker.allow([ALLOWED, {**ALLOWED, "Resource": [f"{CLUSTER.format('topic')}/missing"]}])
        yield KafkaAccess(broker.scram, "sasl-scram", secret="arn:s", ca=broker.root.pem, credentials=Credentials(USER, PASSWORD))


def test_a_driver_tells_a_topic_that_it_may_not_read_from_one_that_is_missing(access: KafkaAccess) -> None:
    asked = Brokers(access, group="penstock.test")
    try:
        assert asked.partitions(["seen"]) == {"seen": 2}
        with pytest.raises(Faults) as raised:
            asked.partitions(["seen", "hidden", "missing"])
    finally:
        asked.close()
    denied, missing = raised.value.errors
    assert isinstance(denied, TopicAccessDenied) and isinstance(missing, TopicNotFound)
    assert (denied.path, denied.need) == ("topic hidden", "ACLs that allow the client DESCRIBE and READ")
    assert missing.path == "topic missing"


def test_so_does_a_sink(access: KafkaAccess) -> None:
    admin = admin_of(access, Heard(access))
    assert "seen" in cluster_with(admin, access, "seen").topics
    with pytest.raises(TopicAccessDenied, match="topic hidden"):
        cluster_with(admin, access, "hidden")
    with pytest.raises(TopicNotFound, match="topic missing"):
        cluster_with(admin, access, "missing")


def test_with_iam_it_names_the_statement_of_the_role(access: KafkaAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is asked is the broker above, to which clients sign in with a password.
    settings = client_settings(access)
    monkeypatch.setattr("penstock.jobs.kafka.topic_access.client_settings", lambda _: settings)
    (read,) = hidden(replace(access, security="iam", region="us-east-1"), ["hidden", "seen"], "read", 20)
    need = "the actions kafka-cluster:DescribeTopic and kafka-cluster:ReadData, which the statement ReadOwnTopics of the job's role allows"
    assert read.need == need


def test_these_are_the_statements_of_a_role() -> None:
    buckets = Buckets(checkpoints_arn="arn:aws:s3:::c", output_arn="arn:aws:s3:::o", output="o", key_arn="arn:aws:kms:k", service="s3")
    brokers = BrokerArns(*(CLUSTER.format(kind) for kind in ("cluster", "topic", "group", "transactional-id")))
    granted = {one["Sid"]: one["Action"] for one in statements(load(layout.ROOT / "jobs/specs/error_logs.yaml"), buckets, brokers)}
    assert {sid: tuple(granted[sid]) for sid, _ in STATEMENTS.values()} == dict(STATEMENTS.values())
