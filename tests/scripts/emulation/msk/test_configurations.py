from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, name, refusal

pytestmark = pytest.mark.emulated

BAD = (400, "BadRequestException")
PROPERTIES = b"auto.create.topics.enable=false\n# two of three copies\nmin.insync.replicas = 2\n"


def _made(account: Account, **asked: Any) -> Any:
    return account.kafka.create_configuration(**{"Name": name("configuration"), "ServerProperties": PROPERTIES, **asked})


def test_a_configuration_has_revisions_which_stay(account: Account) -> None:
    made = _made(account, KafkaVersions=["3.9.x"], Description="first")
    arn = made["Arn"]
    assert made["LatestRevision"]["Revision"] == 1
    later = account.kafka.update_configuration(Arn=arn, ServerProperties=b"num.partitions=6", Description="second")
    assert later["LatestRevision"]["Revision"] == 2
    texts = [account.kafka.describe_configuration_revision(Arn=arn, Revision=number)["ServerProperties"] for number in (1, 2)]
    assert texts == [PROPERTIES, b"num.partitions=6"]
    described = account.kafka.describe_configuration(Arn=arn)
    assert (described["LatestRevision"]["Description"], described["KafkaVersions"]) == ("second", ["3.9.x"])
    listed = account.kafka.list_configuration_revisions(Arn=arn)["Revisions"]
    assert [revision["Revision"] for revision in listed] == [1, 2]
    assert arn in [one["Arn"] for one in account.kafka.list_configurations()["Configurations"]]


@pytest.mark.parametrize(
    "properties",
    [
        b"no.such.property=1",
        b"min.insync.replicas=two",
        b"auto.create.topics.enable=perhaps",
        b"log.cleanup.policy=keep",
        b"num.partitions=1\nnum.partitions=2",
        b"\xff",
    ],
)
def test_properties_that_brokers_do_not_know_are_refused(account: Account, properties: bytes) -> None:
    assert refusal(lambda: _made(account, ServerProperties=properties)) == BAD


def test_a_configuration_that_can_not_be_is_refused(account: Account) -> None:
    assert refusal(lambda: _made(account, Name="under_score")) == BAD
    assert refusal(lambda: _made(account, KafkaVersions=["0.8.2"])) == BAD
    assert refusal(lambda: account.kafka.create_configuration(Name=name("configuration"))) == BAD
    taken = name("configuration")
    _made(account, Name=taken)
    assert refusal(lambda: _made(account, Name=taken)) == (409, "ConflictException")


def test_a_configuration_that_is_gone_is_told_in_the_words_that_clients_look_for(account: Account) -> None:
    arn = _made(account)["Arn"]
    assert refusal(lambda: account.kafka.describe_configuration_revision(Arn=arn, Revision=2)) == (404, "NotFoundException")
    assert account.kafka.delete_configuration(Arn=arn)["State"] == "DELETING"
    with pytest.raises(account.kafka.exceptions.BadRequestException, match="Configuration ARN does not exist"):
        account.kafka.describe_configuration(Arn=arn)


def test_a_configuration_in_use_stays(account: Account) -> None:
    made = _made(account, KafkaVersions=["3.9.x"])
    info = {"Arn": made["Arn"], "Revision": 1}
    group = {"InstanceType": "kafka.m7g.large", "ClientSubnets": account.subnets}
    asked = {"BrokerNodeGroupInfo": group, "NumberOfBrokerNodes": 3, "ConfigurationInfo": info}
    assert refusal(lambda: account.kafka.create_cluster(ClusterName=name("kafka"), KafkaVersion="3.8.x", **asked)) == BAD
    cluster = account.kafka.create_cluster(ClusterName=name("kafka"), KafkaVersion="3.9.x", **asked)["ClusterArn"]
    assert refusal(lambda: account.kafka.delete_configuration(Arn=made["Arn"])) == BAD
    account.kafka.update_configuration(Arn=made["Arn"], ServerProperties=b"num.partitions=6")
    version = account.kafka.describe_cluster(ClusterArn=cluster)["ClusterInfo"]["CurrentVersion"]
    second = {"Arn": made["Arn"], "Revision": 2}
    account.kafka.update_cluster_configuration(ClusterArn=cluster, CurrentVersion=version, ConfigurationInfo=second)
    software = account.kafka.describe_cluster(ClusterArn=cluster)["ClusterInfo"]["CurrentBrokerSoftwareInfo"]
    assert software["ConfigurationRevision"] == 2
    account.kafka.delete_cluster(ClusterArn=cluster)
    account.kafka.delete_configuration(Arn=made["Arn"])
