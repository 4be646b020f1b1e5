from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import BROKERS, Account, name, refusal

pytestmark = pytest.mark.emulated

BAD = (400, "BadRequestException")
GONE = (404, "NotFoundException")
IAM = {"Sasl": {"Iam": {"Enabled": True}}}


def _asked(account: Account, **asked: Any) -> dict[str, Any]:
    group = {"InstanceType": "kafka.m7g.large", "ClientSubnets": account.subnets, "SecurityGroups": []}
    own = {"KafkaVersion": "3.9.x", "NumberOfBrokerNodes": 3, "BrokerNodeGroupInfo": group, "ClientAuthentication": IAM}
    return {**own, **asked}


def _made(account: Account, **asked: Any) -> str:
    arn: str = account.kafka.create_cluster(ClusterName=name("kafka"), **_asked(account, **asked))["ClusterArn"]
    return arn


def _described(account: Account, arn: str) -> Any:
    return account.kafka.describe_cluster(ClusterArn=arn)["ClusterInfo"]


def _volume(gib: int) -> dict[str, Any]:
    return {"StorageInfo": {"EbsStorageInfo": {"VolumeSize": gib}}}


def test_a_cluster_is_active_and_described_as_it_was_asked_for_in_both_versions_of_the_api(account: Account) -> None:
    encryption = {
        "EncryptionAtRest": {"DataVolumeKMSKeyId": account.key},
        "EncryptionInTransit": {"ClientBroker": "TLS", "InCluster": True},
    }
    arn = _made(account, EncryptionInfo=encryption, EnhancedMonitoring="PER_BROKER", Tags={"a": "b"})
    first = _described(account, arn)
    assert (first["State"], first["NumberOfBrokerNodes"], first["Tags"]) == ("ACTIVE", 3, {"a": "b"})
    assert (first["EncryptionInfo"], first["EnhancedMonitoring"], first["ClientAuthentication"]) == (encryption, "PER_BROKER", IAM)
    second = account.kafka.describe_cluster_v2(ClusterArn=arn)["ClusterInfo"]
    assert second["ClusterType"] == "PROVISIONED"
    assert second["Provisioned"] == {key: first[key] for key in second["Provisioned"]}


def test_the_brokers_of_every_cluster_are_those_that_run_here(account: Account) -> None:
    arn = _made(account)
    strings = account.kafka.get_bootstrap_brokers(ClusterArn=arn)
    assert {key: value for key, value in strings.items() if key != "ResponseMetadata"} == {"BootstrapBrokerStringSaslIam": BROKERS}


def test_each_way_for_clients_has_its_address(account: Account) -> None:
    transit = {"EncryptionInTransit": {"ClientBroker": "TLS_PLAINTEXT", "InCluster": True}}
    open_to_all = {"Unauthenticated": {"Enabled": True}, **IAM}
    arn = _made(account, EncryptionInfo=transit, ClientAuthentication=open_to_all)
    strings = account.kafka.get_bootstrap_brokers(ClusterArn=arn)
    assert {key for key in strings if key.startswith("Bootstrap")} == {
        "BootstrapBrokerString",
        "BootstrapBrokerStringTls",
        "BootstrapBrokerStringSaslIam",
    }


@pytest.mark.parametrize(
    "asked",
    [
        {"NumberOfBrokerNodes": 4},
        {"NumberOfBrokerNodes": 0},
        {"NumberOfBrokerNodes": 61},
        {"KafkaVersion": "0.8.2"},
        {"ClientAuthentication": {"Sasl": {"Iam": {"Enabled": False}}}},
        {"EncryptionInfo": {"EncryptionInTransit": {"ClientBroker": "PLAINTEXT"}}},
        {"EncryptionInfo": {"EncryptionAtRest": {"DataVolumeKMSKeyId": "arn:aws:kms:us-east-1:123456780000:key/none"}}},
        {"ConfigurationInfo": {"Arn": "arn:aws:kafka:us-east-1:123456780000:configuration/none/0-1", "Revision": 1}},
        {"LoggingInfo": {"BrokerLogs": {"CloudWatchLogs": {"Enabled": True, "LogGroup": "none"}}}},
        {"EnhancedMonitoring": "EVERYTHING"},
    ],
    ids=str,
)
def test_a_cluster_that_can_not_be_is_refused(account: Account, asked: dict[str, Any]) -> None:
    assert refusal(lambda: _made(account, **asked)) == BAD


@pytest.mark.parametrize(
    "group",
    [
        {"InstanceType": "kafka.m99.large"},
        {"ClientSubnets": ["subnet-0", "subnet-1", "subnet-2"]},
        {"SecurityGroups": ["sg-0"]},
        {"InstanceType": "express.m7g.large", **_volume(100)},
        _volume(16_385),
    ],
    ids=str,
)
def test_brokers_that_can_not_be_are_refused(account: Account, group: dict[str, Any]) -> None:
    own = {"InstanceType": "kafka.m7g.large", "ClientSubnets": account.subnets, **group}
    assert refusal(lambda: _made(account, BrokerNodeGroupInfo=own)) == BAD


def test_subnets_lie_in_different_zones(account: Account) -> None:
    own = {"InstanceType": "kafka.m7g.large", "ClientSubnets": [account.subnets[0]] * 3}
    assert refusal(lambda: _made(account, BrokerNodeGroupInfo=own)) == BAD


def test_a_name_is_used_once(account: Account) -> None:
    taken = name("kafka")
    account.kafka.create_cluster(ClusterName=taken, **_asked(account))
    assert refusal(lambda: account.kafka.create_cluster(ClusterName=taken, **_asked(account))) == (409, "ConflictException")


def test_what_is_not_there_is_not_found(account: Account) -> None:
    arn = "arn:aws:kafka:us-east-1:123456780000:cluster/none/0-1"
    for call in (account.kafka.describe_cluster, account.kafka.describe_cluster_v2, account.kafka.delete_cluster):
        assert refusal(lambda call=call: call(ClusterArn=arn)) == GONE  # type: ignore[misc]
    assert refusal(lambda: account.kafka.get_bootstrap_brokers(ClusterArn=arn)) == GONE
    arn = _made(account)
    account.kafka.delete_cluster(ClusterArn=arn)
    assert refusal(lambda: account.kafka.describe_cluster(ClusterArn=arn)) == GONE


def test_volumes_grow_and_never_shrink(account: Account) -> None:
    arn = _made(account, BrokerNodeGroupInfo={"InstanceType": "kafka.m7g.large", "ClientSubnets": account.subnets, **_volume(100)})

    def resize(gib: int) -> Any:
        target = [{"KafkaBrokerNodeId": "All", "VolumeSizeGB": gib}]
        version = _described(account, arn)["CurrentVersion"]
        return account.kafka.update_broker_storage(ClusterArn=arn, CurrentVersion=version, TargetBrokerEBSVolumeInfo=target)

    operation = resize(200)["ClusterOperationArn"]
    done = account.kafka.describe_cluster_operation(ClusterOperationArn=operation)["ClusterOperationInfo"]
    assert (done["OperationState"], done["OperationType"]) == ("UPDATE_COMPLETE", "UPDATE_BROKER_STORAGE")
    again = account.kafka.describe_cluster_operation_v2(ClusterOperationArn=operation)["ClusterOperationInfo"]
    assert again["Provisioned"]["TargetClusterInfo"] == done["TargetClusterInfo"]
    assert _described(account, arn)["BrokerNodeGroupInfo"]["StorageInfo"]["EbsStorageInfo"]["VolumeSize"] == 200
    assert refusal(lambda: resize(150)) == BAD
    assert refusal(lambda: resize(200)) == BAD


def test_a_change_names_the_version_that_it_changes(account: Account) -> None:
    arn = _made(account)
    stale = _described(account, arn)["CurrentVersion"]
    account.kafka.update_broker_count(ClusterArn=arn, CurrentVersion=stale, TargetNumberOfBrokerNodes=6)
    assert refusal(lambda: account.kafka.update_broker_count(ClusterArn=arn, CurrentVersion=stale, TargetNumberOfBrokerNodes=9)) == BAD
    assert refusal(lambda: account.kafka.delete_cluster(ClusterArn=arn, CurrentVersion=stale)) == BAD


def test_what_a_cluster_is_made_of_changes(account: Account) -> None:
    arn = _made(account)

    def change(operation: str, **asked: Any) -> Any:
        call = getattr(account.kafka, operation)
        call(ClusterArn=arn, CurrentVersion=_described(account, arn)["CurrentVersion"], **asked)
        return _described(account, arn)

    assert change("update_broker_count", TargetNumberOfBrokerNodes=6)["NumberOfBrokerNodes"] == 6
    assert change("update_broker_type", TargetInstanceType="kafka.m7g.xlarge")["BrokerNodeGroupInfo"]["InstanceType"] == "kafka.m7g.xlarge"
    assert change("update_monitoring", EnhancedMonitoring="PER_TOPIC_PER_BROKER")["EnhancedMonitoring"] == "PER_TOPIC_PER_BROKER"
    both = {"Sasl": {"Iam": {"Enabled": True}}, "Unauthenticated": {"Enabled": True}}
    assert change("update_security", ClientAuthentication=both)["ClientAuthentication"] == both
    assert refusal(lambda: change("update_broker_type", TargetInstanceType="express.m7g.large")) == BAD
    assert refusal(lambda: change("update_broker_count", TargetNumberOfBrokerNodes=7)) == BAD
    assert refusal(lambda: change("update_monitoring", EnhancedMonitoring="PER_TOPIC_PER_BROKER")) == BAD
    assert refusal(lambda: change("update_cluster_kafka_version", TargetKafkaVersion="3.8.x")) == BAD


def test_a_cluster_has_tags_and_a_policy(account: Account) -> None:
    arn = _made(account)
    account.kafka.tag_resource(ResourceArn=arn, Tags={"a": "b", "c": "d"})
    account.kafka.untag_resource(ResourceArn=arn, TagKeys=["a"])
    assert account.kafka.list_tags_for_resource(ResourceArn=arn)["Tags"] == {"c": "d"}
    assert refusal(lambda: account.kafka.get_cluster_policy(ClusterArn=arn)) == GONE
    policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow"}]}'
    version = account.kafka.put_cluster_policy(ClusterArn=arn, Policy=policy)["CurrentVersion"]
    held = account.kafka.get_cluster_policy(ClusterArn=arn)
    assert (held["Policy"], held["CurrentVersion"]) == (policy, version)
    assert refusal(lambda: account.kafka.put_cluster_policy(ClusterArn=arn, Policy="{}", CurrentVersion=version)) == BAD
    account.kafka.delete_cluster_policy(ClusterArn=arn)
    assert refusal(lambda: account.kafka.delete_cluster_policy(ClusterArn=arn)) == GONE


def test_express_brokers_have_no_volumes(account: Account) -> None:
    arn = _made(account, BrokerNodeGroupInfo={"InstanceType": "express.m7g.large", "ClientSubnets": account.subnets})
    made = _described(account, arn)
    assert "StorageInfo" not in made["BrokerNodeGroupInfo"]
    assert "StorageMode" not in made


def test_a_serverless_cluster_is_for_iam_only(account: Account) -> None:
    def create(**authentication: Any) -> Any:
        asked = {"VpcConfigs": [{"SubnetIds": account.subnets}], **authentication}
        return account.kafka.create_cluster_v2(ClusterName=name("kafka"), Serverless=asked)

    made = create(ClientAuthentication=IAM)
    described = account.kafka.describe_cluster_v2(ClusterArn=made["ClusterArn"])["ClusterInfo"]
    assert (described["ClusterType"], described["State"]) == ("SERVERLESS", "ACTIVE")
    assert account.kafka.get_bootstrap_brokers(ClusterArn=made["ClusterArn"])["BootstrapBrokerStringSaslIam"] == BROKERS
    assert refusal(create) == BAD
    assert refusal(lambda: account.kafka.describe_cluster(ClusterArn=made["ClusterArn"])) == BAD


def test_a_cluster_is_of_one_kind(account: Account) -> None:
    assert refusal(lambda: account.kafka.create_cluster_v2(ClusterName=name("kafka"))) == BAD


def test_nodes_are_spread_over_the_subnets(account: Account) -> None:
    arn = _made(account, NumberOfBrokerNodes=6)
    nodes = account.kafka.list_nodes(ClusterArn=arn)["NodeInfoList"]
    assert [node["BrokerNodeInfo"]["ClientSubnet"] for node in nodes] == account.subnets * 2
    assert [node["BrokerNodeInfo"]["BrokerId"] for node in nodes] == [1, 2, 3, 4, 5, 6]
