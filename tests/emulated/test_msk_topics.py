"""``penstock topics`` by MSK's API, whose emulation changes the topics of a real broker, and shows changes late, as MSK does."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.pipeline.deploy_role import permissions
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.topics.brokers import TopicBrokers
from penstock.scripts.topics.difference import Changed, ExistingTopic, TopicChange
from penstock.scripts.topics.msk_cluster import find
from penstock.scripts.topics.msk_topics import MskTopics
from penstock.sizing.errors import PenstockError
from tests.enforcing_msk import EnforcingMsk
from tests.infra.environments import written

IAM = {"Sasl": {"Iam": {"Enabled": True}}}


@pytest.fixture(scope="module")
def aws(broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    log = tmp_path_factory.mktemp("aws") / "aws.log"
    with EmulatedAws(log=log, brokers=broker.address) as running:
        yield running
    assert "is none of AWS's" not in log.read_text()
    assert "Traceback" not in log.read_text()


@dataclass
class Desk:
    """An environment on the emulated AWS with one job, whose topics no other test has."""

    folder: Path
    broker: KafkaBroker
    environment: Environment
    topic: str

    def write(self, partitions: int = 2, **settings: Any) -> None:
        (self.folder / "app.py").write_text("")
        spec = {
            "app": "app",
            "parallelism": 2,
            "executor": {"slots": 2, "memory": "8g"},
            "sources": {"a": {"kafka": {"topic": self.topic, "partitions": partitions}}},
            "sinks": {"out": {"files": {"path": "out"}}},
            "topics": {self.topic: settings} if settings else {},
        }
        document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": self.topic}, "spec": spec}
        (self.folder / "job.yaml").write_text(yaml.safe_dump(document))

    def run(self, action: str, *more: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["topics", action, str(self.folder / "environment.yaml"), *more])
        return code, out.getvalue(), err.getvalue()

    def apply(self, *more: str) -> str:
        code, out, err = self.run("apply", "--yes", *more)
        assert code == 0, err
        return out

    def existing(self) -> ExistingTopic | None:
        """As the broker itself has it."""
        return TopicBrokers(KafkaAccess(self.broker.address)).existing([self.topic]).get(self.topic)

    def at(self, endpoint: str) -> None:
        """Its AWS is elsewhere from now on."""
        file = self.folder / "environment.yaml"
        document = yaml.safe_load(file.read_text("utf-8"))
        document["spec"]["endpoints"] = {"aws": endpoint}
        file.write_text(yaml.safe_dump(document), "utf-8")

    def msk(self) -> MskTopics:
        client = AwsAccess(self.environment).client("kafka")
        return MskTopics(client, find(self.environment, client))


def _desk(folder: Path, broker: KafkaBroker, aws: EmulatedAws, kafka: dict[str, Any]) -> Desk:
    name = f"m{uuid.uuid4().hex[:8]}"

    def change(spec: dict[str, Any]) -> None:
        spec.update(jobs=["job.yaml"], kafka=kafka, endpoints={"aws": aws.endpoint}, account="000000000000")

    folder.mkdir(exist_ok=True)
    file = written(folder, change)
    document = yaml.safe_load(file.read_text("utf-8"))
    document["metadata"]["name"] = name
    file.write_text(yaml.safe_dump(document), "utf-8")
    made = Desk(folder, broker, load(file), name)
    made.write()
    return made


def _create_cluster(environment: Environment, version: str = "3.9.x", kind: str = "kafka.m7g.large") -> str:
    access = AwsAccess(environment)
    zones = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in access.client("ec2").describe_subnets()["Subnets"]}
    group = {"InstanceType": kind, "ClientSubnets": sorted(zones.values())[:3]}
    asked = {"KafkaVersion": version, "NumberOfBrokerNodes": 3, "BrokerNodeGroupInfo": group, "ClientAuthentication": IAM}
    arn: str = access.client("kafka").create_cluster(ClusterName=environment.prefix, **asked)["ClusterArn"]
    return arn


@pytest.fixture
def desk(broker: KafkaBroker, aws: EmulatedAws, tmp_path: Path) -> Desk:
    made = _desk(tmp_path, broker, aws, {"kind": "standard", "replication": 1, "retention": "6h"})
    _create_cluster(made.environment)
    return made


def test_a_topic_is_made_on_the_broker_without_its_address(desk: Desk) -> None:
    code, out, _ = desk.run("plan")
    assert code == 0
    assert out.startswith(f"topics of {desk.environment.name} on {desk.environment.prefix}, through MSK's API\n")
    assert desk.existing() is None
    desk.apply()
    made = desk.existing()
    assert made is not None
    assert (made.partitions, made.replication, made.config["retention.ms"]) == (2, 1, "21600000")
    assert "1 unchanged" in desk.apply()


def test_it_grows_and_other_settings_are_kept(desk: Desk) -> None:
    desk.write(config={"segment.ms": 3_600_000})
    desk.apply()
    desk.write(partitions=5, retention="7d")
    desk.apply()
    made = desk.existing()
    assert made is not None
    assert (made.partitions, made.config["retention.ms"], made.config["segment.ms"]) == (5, "604800000", "3600000")
    assert "1 unchanged" in desk.apply()


def test_records_are_not_lost_unasked_even_if_the_topic_keeps_them_by_the_brokers_default(desk: Desk) -> None:
    TopicBrokers(KafkaAccess(desk.broker.address)).do(
        TopicChange(desk.topic, ("create",), Changed(None, "2"), Changed(None, "1")), "create"
    )
    desk.write(retention="1h")
    code, _, err = desk.run("apply", "--yes")
    assert (code, "TOP-001" in err) == (1, True)
    desk.apply("--lose-records")
    made = desk.existing()
    assert made is not None and made.config["retention.ms"] == "3600000"


def test_an_unknown_setting_is_reported_when_it_is_made(desk: Desk) -> None:
    desk.write(config={"retenton.ms": 5})
    code, _, err = desk.run("apply", "--yes")
    assert (code, desk.existing()) == (5, None)
    assert f"error[TOP-003]: brokers rejected a change\n  at   create {desk.topic} = Unknown topic config name: retenton.ms" in err


def test_more_replicas_than_brokers_are_reported_by_the_plan(desk: Desk) -> None:
    code, _, err = desk.run("plan", "--replication", "4")
    assert code == 5
    assert f"at   create {desk.topic} = 4 replicas\n" in err and "at most as many replicas as the cluster has brokers, 3" in err


def test_a_topic_that_is_there_and_not_yet_shown_is_left_alone(desk: Desk) -> None:
    """As after a run of a moment ago: MSK's answers are a minute old."""
    topics, change = desk.msk(), TopicChange(desk.topic, ("create",), Changed(None, "3"), Changed(None, "1"))
    topics.do(change, "create")
    assert topics.existing([desk.topic]) == {}
    with pytest.raises(PenstockError) as raised:
        desk.msk().do(change, "create")
    assert raised.value.code == "TOP-003"
    assert "wait a minute" in (raised.value.fix or "")
    topics.settle()
    assert topics.existing([desk.topic])[desk.topic].partitions == 3


def test_programs_are_told_the_way(desk: Desk) -> None:
    code, out, _ = desk.run("plan", "-o", "json")
    assert (code, json.loads(out)["through"]) == (0, "msk-api")
    code, out, _ = desk.run("plan", "-o", "json", "--through", "here")
    assert (code, json.loads(out)["through"]) == (0, "here")
    code, out, _ = desk.run("plan", "--brokers", desk.broker.address)
    assert out.splitlines()[0].endswith(f"on {desk.broker.address}, from here")


def test_brokers_of_the_stacks_that_are_serverless_are_asked_themselves(broker: KafkaBroker, aws: EmulatedAws, tmp_path: Path) -> None:
    one = _desk(tmp_path, broker, aws, {"kind": "serverless"})
    code, _, err = one.run("plan", "--through", "msk-api")
    assert (code, "error[TOP-010]" in err, "a serverless cluster" in err) == (2, True, True)
    code, _, err = one.run("plan", "--through", "msk-api", "--brokers", broker.address)
    assert (code, "error[USE-001]" in err) == (2, True)
    code, out, err = one.run("plan", "--replication", "1", "--brokers", broker.address)
    assert (code, "from here" in out) == (0, True)


def test_a_cluster_of_ones_own_is_found_by_its_arn(desk: Desk, broker: KafkaBroker, aws: EmulatedAws, tmp_path: Path) -> None:
    kafka = AwsAccess(desk.environment).client("kafka")
    arn = find(desk.environment, kafka).arn
    own = {"kind": "external", "security": "iam", "clusterArn": arn, "bootstrapServers": broker.address, "replication": 1}
    one = _desk(tmp_path / "own", broker, aws, own)
    one.apply()
    made = one.existing()
    assert made is not None and made.partitions == 2
    gone = _desk(tmp_path / "gone", broker, aws, {**own, "clusterArn": arn.replace("penstock-m", "penstock-n")})
    code, _, err = gone.run("plan")
    assert (code, "error[TOP-005]" in err, "no MSK cluster has this ARN" in err) == (5, True, True)


def _statements(environment: Environment) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = json.loads(permissions(environment, "aws"))["Statement"]
    return statements


def test_the_deploy_role_may_all_that_an_apply_asks_for(desk: Desk, aws: EmulatedAws) -> None:
    # Without the wildcard for the stacks, those that name topics must do.
    named = [one for one in _statements(desk.environment) if one["Sid"] != "Stacks"]
    with EnforcingMsk(aws.endpoint, named) as proxy:
        desk.at(proxy.endpoint)
        desk.apply()
        desk.write(partitions=3, retention="7d")
        desk.apply()
    assert proxy.asked >= {"kafka:CreateTopic", "kafka:UpdateTopic", "kafka-cluster:AlterTopicDynamicConfiguration"}
    made = desk.existing()
    assert made is not None and (made.partitions, made.config["retention.ms"]) == (3, "604800000")


@pytest.mark.parametrize("action", ["kafka-cluster:CreateTopic", "kafka-cluster:DescribeTopic", "kafka-cluster:Connect"])
def test_a_right_that_is_missing_is_named_with_the_statement_that_has_it(desk: Desk, aws: EmulatedAws, action: str) -> None:
    less = [{**one, "Action": [each for each in one["Action"] if each != action]} for one in _statements(desk.environment)]
    with EnforcingMsk(aws.endpoint, less) as proxy:
        desk.at(proxy.endpoint)
        code, _, err = desk.run("apply", "--yes")
    assert (code, desk.existing()) == (5, None)
    assert "error[TOP-009]: right on topics missing" in err
    assert f"need {action} in the policy of the caller's role, for arn:aws:kafka:us-east-1:000000000000:cluster/" in err
    assert "ConnectToBrokers, ManageTopics and ManageTopicsByMsk" in err


def test_brokers_that_msk_does_not_reach_are_reported(tmp_path: Path, broker: KafkaBroker) -> None:
    with EmulatedAws(log=tmp_path / "aws.log") as alone:
        one = _desk(tmp_path, broker, alone, {"kind": "standard", "replication": 1})
        _create_cluster(one.environment)
        code, _, err = one.run("plan")
    assert (code, "error[TOP-002]" in err, "--through here" in err) == (5, True, True)


def test_the_emulated_api_lists_and_deletes_topics_and_refuses_what_msk_refuses(desk: Desk) -> None:
    desk.apply()
    kafka = AwsAccess(desk.environment).client("kafka")
    arn = find(desk.environment, kafka).arn
    at = {"ClusterArn": arn, "TopicName": desk.topic}
    (listed,) = kafka.list_topics(ClusterArn=arn, TopicNameFilter=desk.topic)["Topics"]
    assert (listed["PartitionCount"], listed["OutOfSyncReplicaCount"]) == (2, 0)
    assert listed["TopicArn"] == f"{arn.replace(':cluster/', ':topic/')}/{desk.topic}"
    parts = kafka.describe_topic_partitions(**at)["Partitions"]
    assert [(part["Partition"], part["Replicas"], part["Isr"]) for part in parts] == [(0, [1], [1]), (1, [1], [1])]
    refused: dict[str, Callable[[], object]] = {
        "BadRequestException": lambda: kafka.update_topic(**at, PartitionCount=4, Configs="e30="),
        "TopicExistsException": lambda: kafka.create_topic(**at, PartitionCount=1, ReplicationFactor=1),
        "KafkaRequestException": lambda: kafka.update_topic(**at, PartitionCount=1),
        "NotFoundException": lambda: kafka.describe_topic(ClusterArn=arn, TopicName="none"),
    }
    for code, call in refused.items():
        with pytest.raises(ClientError) as raised:
            call()
        assert raised.value.response["Error"]["Code"] == code
    kafka.delete_topic(**at)
    assert desk.existing() is None
