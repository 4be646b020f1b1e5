"""The environment's MSK cluster: found by its name, or by the ARN of one that exists already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.scripts.topics.errors import KafkaClusterNotFound

ACTIVE = "ACTIVE"
_BY_IAM = "BootstrapBrokerStringSaslIam"
# Source: Amazon MSK Developer Guide, "Topic Operations", "Requirements for using topic APIs".
TOPICS_SINCE = (3, 6)


@dataclass(frozen=True)
class MskCluster:
    """A cluster as MSK describes it.

    Args:
        arn: its ARN.
        state: such as ACTIVE.
        kafka_version: as MSK names it, such as ``3.9.x.kraft``; None: serverless.
        brokers: number of brokers; None: serverless.
    """

    arn: str
    state: str
    kafka_version: str | None
    brokers: int | None

    @property
    def without_topics_api(self) -> str | None:
        """Why MSK's API does not manage this cluster's topics; None if it does."""
        if self.kafka_version is None:
            return "a serverless cluster"
        if _number(self.kafka_version) < TOPICS_SINCE:
            return f"Kafka {self.kafka_version}"
        return None


def find(environment: Environment, client: Any) -> MskCluster:
    """Find the environment's cluster.

    Args:
        environment: with brokers on MSK.
        client: boto3's, of MSK in the cluster's region.

    Raises:
        KafkaClusterNotFound: TOP-005.
        ClientError: any other error of MSK.
    """
    kafka = environment.spec.kafka
    arn = None if kafka is None else kafka.cluster_arn
    return _of_arn(arn, client) if arn else _named(environment, client)


def bootstrap(cluster: MskCluster, client: Any) -> str:
    """The address of the brokers for clients that use IAM.

    Raises:
        KafkaClusterNotFound: TOP-005.
        ClientError: any other error of MSK.
    """
    answer = client.get_bootstrap_brokers(ClusterArn=cluster.arn)
    if _BY_IAM not in answer:
        given = f"its state is {cluster.state}, without brokers for IAM"
        need = "an ACTIVE cluster with IAM authentication"
        fix = "wait until it is ACTIVE, and check its authentication"
        raise KafkaClusterNotFound(path=cluster.arn.split("/")[1], given=given, need=need, fix=fix)
    return str(answer[_BY_IAM])


def _of_arn(arn: str, client: Any) -> MskCluster:
    try:
        return _described(client.describe_cluster_v2(ClusterArn=arn)["ClusterInfo"])
    except client.exceptions.NotFoundException:
        need = "the ARN of a cluster: aws kafka list-clusters-v2"
        raise KafkaClusterNotFound(path=arn, given="no MSK cluster has this ARN", need=need, fix="correct spec.kafka.clusterArn") from None


def _named(environment: Environment, client: Any) -> MskCluster:
    name, region = environment.prefix, environment.spec.region
    pages = client.get_paginator("list_clusters_v2").paginate(ClusterNameFilter=name)
    # ListClustersV2 filters by prefix.
    clusters = [cluster for page in pages for cluster in page["ClusterInfoList"] if cluster["ClusterName"] == name]
    if not clusters:
        need = f"a cluster {name} in {region}, as created by the kafka stack"
        fix = f"penstock deploy {argument_of(environment)} kafka"
        raise KafkaClusterNotFound(path=name, given="no MSK cluster has this name", need=need, fix=fix)
    return _described(clusters[0])


def _described(info: Mapping[str, Any]) -> MskCluster:
    provisioned = info.get("Provisioned")
    return MskCluster(
        arn=info["ClusterArn"],
        state=info["State"],
        kafka_version=None if provisioned is None else provisioned["CurrentBrokerSoftwareInfo"]["KafkaVersion"],
        brokers=None if provisioned is None else provisioned["NumberOfBrokerNodes"],
    )


def _number(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
