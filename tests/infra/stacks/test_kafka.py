"""The synthesized Kafka stack: access, encryption, retention and growth."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.errors import BrokersUnknown
from penstock.infra.plans import plans
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from tests.infra.stacks.synthesized import Content, content

Synthesize = Callable[..., Content]


def environment(**kafka: Any) -> Environment:
    """The production environment with another Kafka."""
    data = load("production").model_dump(by_alias=True, exclude_none=True)
    protect = kafka.pop("protect", True)
    chosen = {"kind": "standard", **kafka}
    data["spec"].update(kafka=None if chosen["kind"] is None else chosen, protect=protect)
    return Environment.model_validate(data)


@pytest.fixture(scope="module")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    def one(**kafka: Any) -> Content:
        def add(app: Any) -> None:
            from penstock.infra.stacks.kafka import KafkaStack
            from penstock.infra.stacks.network import NetworkOutputs

            changed = environment(**kafka)
            network = NetworkOutputs("vpc-1", "10.0.0.0/16", ("subnet-a", "subnet-b", "subnet-c"), ())
            KafkaStack(app, changed, network, plans(changed))

        return content(tmp_path_factory.mktemp("kafka"), "kafka", add)

    return one


@pytest.fixture(scope="module")
def standard(synthesize: Synthesize) -> Content:
    return synthesize()


@pytest.fixture(scope="module")
def express(synthesize: Synthesize) -> Content:
    return synthesize(kind="express", protect=False)


@pytest.fixture(scope="module")
def serverless(synthesize: Synthesize) -> Content:
    return synthesize(kind="serverless")


def cluster(stack: Content, kind: str = "aws_msk_cluster") -> dict[str, Any]:
    resource: dict[str, Any] = stack["resource"][kind]["kafka"]
    return resource


def settings(stack: Content) -> dict[str, str]:
    text = stack["resource"]["aws_msk_configuration"]["configuration"]["server_properties"]
    return dict(line.split(" = ") for line in text.splitlines())


def outputs(stack: Content) -> dict[str, Any]:
    return {name: output["value"] for name, output in stack.get("output", {}).items()}


def test_only_clients_with_iam_authentication_are_admitted(standard: Content, express: Content, serverless: Content) -> None:
    for stack in (standard, express):
        assert cluster(stack)["client_authentication"] == {"unauthenticated": False, "sasl": {"iam": True, "scram": False}}
    assert cluster(serverless, "aws_msk_serverless_cluster")["client_authentication"] == {"sasl": {"iam": {"enabled": True}}}


def test_every_byte_is_encrypted_on_its_way_and_at_rest(standard: Content, express: Content) -> None:
    for stack in (standard, express):
        encryption = cluster(stack)["encryption_info"]
        assert encryption["encryption_in_transit"] == {"client_broker": "TLS", "in_cluster": True}
        assert encryption["encryption_at_rest_kms_key_arn"] == "${aws_kms_key.key.arn}"
        assert stack["resource"]["aws_kms_key"]["key"]["enable_key_rotation"] is True


def _doors(stack: Content) -> list[tuple[str, int, int, str]]:
    rules = stack["resource"]["aws_vpc_security_group_ingress_rule"].values()
    return [(rule["cidr_ipv4"], rule["from_port"], rule["to_port"], rule["ip_protocol"]) for rule in rules]


def test_before_there_are_jobs_the_topics_can_be_made_from_within_the_vpc_alone(
    standard: Content, express: Content, serverless: Content
) -> None:
    for stack in (standard, express, serverless):
        (group,) = stack["resource"]["aws_security_group"].values()
        assert not {"ingress", "egress"} & set(group)
        ((cidr, *ports, protocol),) = _doors(stack)
        assert (ports, protocol) == ([9098, 9098], "tcp")
        assert cidr != "0.0.0.0/0"


def test_or_from_where_the_environment_says(synthesize: Synthesize) -> None:
    doors = _doors(synthesize(clientCidrs=["10.9.0.0/24", "10.8.1.0/28"]))
    assert [cidr for cidr, *_ in doors] == ["10.9.0.0/24", "10.8.1.0/28"]


def test_a_broker_creates_no_topic_on_its_own_and_loses_no_acknowledged_record(standard: Content) -> None:
    assert settings(standard) == {
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_RECORD_BYTES),
        "replica.fetch.max.bytes": str(MAX_RECORD_BYTES),
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "num.partitions": "1",
        "log.retention.ms": "86400000",
        "transaction.max.timeout.ms": "900000",
        "transactional.id.expiration.ms": "604800000",
    }


def test_express_is_asked_only_for_settings_that_it_takes(express: Content) -> None:
    assert settings(express) == {"auto.create.topics.enable": "false", "message.max.bytes": str(MAX_RECORD_BYTES)}


def test_a_cluster_takes_its_configurations_newest_revision(standard: Content) -> None:
    configuration = "aws_msk_configuration.configuration"
    assert cluster(standard)["configuration_info"] == {
        "arn": f"${{{configuration}.arn}}",
        "revision": f"${{{configuration}.latest_revision}}",
    }


def test_storage_grows_automatically_never_shrinks_and_grown_storage_is_not_a_difference(standard: Content) -> None:
    assert cluster(standard)["broker_node_group_info"]["storage_info"] == {"ebs_storage_info": {"volume_size": 100}}
    assert cluster(standard)["lifecycle"]["ignore_changes"] == ["broker_node_group_info[0].storage_info[0].ebs_storage_info[0].volume_size"]
    target = standard["resource"]["aws_appautoscaling_target"]["storage"]
    assert (target["service_namespace"], target["scalable_dimension"]) == ("kafka", "kafka:broker-storage:VolumeSize")
    assert (target["resource_id"], target["min_capacity"], target["max_capacity"]) == ("${aws_msk_cluster.kafka.arn}", 1, 400)
    policy = standard["resource"]["aws_appautoscaling_policy"]["grow-storage"]["target_tracking_scaling_policy_configuration"]
    assert policy["disable_scale_in"] is True
    assert policy["predefined_metric_specification"] == {"predefined_metric_type": "KafkaBrokerStorageUtilization"}
    assert 10 <= policy["target_value"] <= 80


def test_express_has_no_storage_to_plan(express: Content) -> None:
    brokers = cluster(express)
    assert "storage_info" not in brokers["broker_node_group_info"] and "storage_mode" not in brokers
    assert not any(kind.startswith("aws_appautoscaling") for kind in express["resource"])


def test_the_brokers_lie_in_every_zone(standard: Content) -> None:
    nodes = cluster(standard)["broker_node_group_info"]
    assert nodes["client_subnets"] == ["subnet-a", "subnet-b", "subnet-c"]
    assert cluster(standard)["number_of_broker_nodes"] == 3
    assert nodes["security_groups"] == ["${aws_security_group.brokers.id}"]


def test_logs_are_kept_encrypted_for_a_time(standard: Content, express: Content) -> None:
    for stack in (standard, express):
        group = stack["resource"]["aws_cloudwatch_log_group"]["logs"]
        assert (group["name"], group["retention_in_days"]) == ("/penstock-production/kafka", 365)
        assert group["kms_key_id"] == "${aws_kms_key.key.arn}"
        logging = cluster(stack)["logging_info"]["broker_logs"]
        assert logging == {"cloudwatch_logs": {"enabled": True, "log_group": "${aws_cloudwatch_log_group.logs.name}"}}
        statement = json.loads(stack["resource"]["aws_kms_key"]["key"]["policy"])["Statement"][1]
        assert statement["Condition"]["ArnEquals"]["kms:EncryptionContext:aws:logs:arn"][0].endswith(
            ":log-group:/penstock-production/kafka"
        )


def test_metrics_are_those_of_each_partition_and_of_both_exporters(standard: Content) -> None:
    assert cluster(standard)["enhanced_monitoring"] == "PER_TOPIC_PER_PARTITION"
    exporters = cluster(standard)["open_monitoring"]["prometheus"]
    assert exporters == {"jmx_exporter": {"enabled_in_broker": True}, "node_exporter": {"enabled_in_broker": True}}


def test_what_is_protected_is_not_destroyed(standard: Content, express: Content, serverless: Content) -> None:
    assert cluster(standard)["lifecycle"]["prevent_destroy"] is True
    assert cluster(serverless, "aws_msk_serverless_cluster")["lifecycle"]["prevent_destroy"] is True
    assert cluster(express)["lifecycle"]["prevent_destroy"] is False


def test_the_environments_own_choices_are_applied(synthesize: Synthesize) -> None:
    brokers = cluster(
        synthesize(
            brokerType="kafka.m7g.xlarge",
            brokers=6,
            version="3.8.x",
            storageGib=500,
            monitoring="PER_BROKER",
            tieredStorage=True,
            replication=2,
            logRetentionDays=90,
        )
    )
    assert (brokers["number_of_broker_nodes"], brokers["kafka_version"], brokers["enhanced_monitoring"]) == (6, "3.8.x", "PER_BROKER")
    assert brokers["broker_node_group_info"]["instance_type"] == "kafka.m7g.xlarge"
    assert (brokers["storage_mode"], brokers["broker_node_group_info"]["storage_info"]["ebs_storage_info"]["volume_size"]) == (
        "TIERED",
        500,
    )


def _without_topics(stack: Content) -> dict[str, Any]:
    return {name: value for name, value in outputs(stack).items() if name != "topics"}


def test_a_change_of_partitions_is_seen_in_a_diff(standard: Content) -> None:
    assert outputs(standard)["topics"]["events-a"] == 10


def test_others_are_given_the_address_for_those_whom_aws_knows(standard: Content, serverless: Content) -> None:
    for stack, kind in ((standard, "aws_msk_cluster"), (serverless, "aws_msk_serverless_cluster")):
        assert _without_topics(stack) == {
            "cluster_arn": f"${{{kind}.kafka.arn}}",
            "cluster_name": f"${{{kind}.kafka.cluster_name}}",
            "bootstrap_brokers": f"${{{kind}.kafka.bootstrap_brokers_sasl_iam}}",
            "security_group_id": "${aws_security_group.brokers.id}",
            "security": "iam",
        }


def test_brokers_elsewhere_are_an_address_and_no_resource(synthesize: Synthesize) -> None:
    stack = synthesize(kind="external", bootstrapServers="b-1:9094,b-2:9094")
    assert "resource" not in stack
    assert _without_topics(stack) == {"bootstrap_brokers": "b-1:9094,b-2:9094", "security": "tls"}


def test_brokers_elsewhere_without_an_address_are_reported(synthesize: Synthesize) -> None:
    with pytest.raises(BrokersUnknown) as raised:
        synthesize(kind="external")
    assert (raised.value.code, raised.value.exit_code, raised.value.path) == ("INF-043", 2, "spec.kafka.bootstrapServers")


def test_an_environment_without_kafka_gets_no_cluster(synthesize: Synthesize) -> None:
    with pytest.raises(BrokersUnknown) as raised:
        synthesize(kind=None)
    assert (raised.value.code, raised.value.path) == ("INF-043", "spec.kafka")


def test_no_resource_has_moved(standard: Content) -> None:
    """Terraform identifies a resource by its address: otherwise the cluster would be replaced, and all its records lost."""
    assert {f"{kind}.{name}" for kind, named in standard["resource"].items() for name in named} == {
        "aws_appautoscaling_policy.grow-storage",
        "aws_appautoscaling_target.storage",
        "aws_cloudwatch_log_group.logs",
        "aws_kms_key.key",
        "aws_msk_cluster.kafka",
        "aws_msk_configuration.configuration",
        "aws_security_group.brokers",
        "aws_vpc_security_group_ingress_rule.clients-1",
    }
