"""Provisioned and serverless clusters: create, describe, list, delete, and bootstrap brokers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.msk.brokers import allowed_ways, described, network
from penstock.scripts.emulation.msk.state import (
    KAFKA_VERSIONS,
    PROVISIONED,
    SERVERLESS,
    Cluster,
    Msk,
    bad_request,
    conflict,
    new_arn,
    new_version,
    not_found,
    now,
    page,
)

# Bootstrap servers returned for all clusters: host:port, comma-separated.
BROKERS_VARIABLE = "PENSTOCK_EMULATED_BROKERS"
# Source: MSK's developer guide, "Port information".
PORTS = {"plain": 9092, "tls": 9094, "scram": 9096, "iam": 9098}
# Number of brokers in a bootstrap string. Source: MSK's developer guide, "Get the bootstrap brokers".
NAMED_BROKERS = 3
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")


def create_cluster(msk: Msk, asked: Asked) -> Answer:
    """CreateCluster: a provisioned cluster, active at once."""
    made = _add(msk, asked, PROVISIONED, described(msk, asked))
    return {"ClusterArn": made.arn, "ClusterName": made.name, "State": "CREATING"}


def create_cluster_v2(msk: Msk, asked: Asked) -> Answer:
    """CreateClusterV2: a provisioned or serverless cluster."""
    kinds = [kind for kind in ("Provisioned", "Serverless") if kind in asked]
    if len(kinds) != 1:
        raise bad_request("Specify either provisioned or serverless")
    (kind,) = kinds
    about = described(msk, asked[kind]) if kind == "Provisioned" else _serverless(msk, asked[kind])
    made = _add(msk, asked, kind.upper(), about)
    return {"ClusterArn": made.arn, "ClusterName": made.name, "State": "CREATING", "ClusterType": made.kind}


def describe_cluster(msk: Msk, asked: Asked) -> Answer:
    """DescribeCluster: provisioned clusters only."""
    cluster = msk.provisioned(asked)
    return {"ClusterInfo": {**_common(cluster), **cluster.about}}


def describe_cluster_v2(msk: Msk, asked: Asked) -> Answer:
    """DescribeClusterV2."""
    return {"ClusterInfo": _described_v2(msk.cluster(asked))}


def list_clusters(msk: Msk, asked: Asked) -> Answer:
    """ListClusters: provisioned clusters, filtered by name prefix."""
    clusters = [{**_common(one), **one.about} for one in _named(msk, asked) if one.kind == PROVISIONED]
    return page(clusters, asked, "ClusterInfoList")


def list_clusters_v2(msk: Msk, asked: Asked) -> Answer:
    """ListClustersV2."""
    kind = asked.get("ClusterTypeFilter")
    return page([_described_v2(one) for one in _named(msk, asked) if kind in (None, one.kind)], asked, "ClusterInfoList")


def delete_cluster(msk: Msk, asked: Asked) -> Answer:
    """DeleteCluster."""
    cluster = msk.cluster(asked)
    if asked.get("CurrentVersion") not in (None, cluster.version):
        raise bad_request(f"The cluster has the version {cluster.version}, not {asked['CurrentVersion']}", "currentVersion")
    del msk.clusters[cluster.arn]
    return {"ClusterArn": cluster.arn, "State": "DELETING"}


def get_bootstrap_brokers(msk: Msk, asked: Asked) -> Answer:
    """GetBootstrapBrokers: a bootstrap string per enabled authentication."""
    cluster = msk.cluster(asked)
    strings = {
        "plain": "BootstrapBrokerString",
        "tls": "BootstrapBrokerStringTls",
        "scram": "BootstrapBrokerStringSaslScram",
        "iam": "BootstrapBrokerStringSaslIam",
    }
    return {strings[way]: _addresses(cluster, way) for way in sorted(_listeners(cluster))}


def list_nodes(msk: Msk, asked: Asked) -> Answer:
    """ListNodes: the brokers."""
    cluster = msk.provisioned(asked)
    group = cluster.about["BrokerNodeGroupInfo"]
    subnets = group["ClientSubnets"]
    nodes = [
        {
            "NodeType": "BROKER",
            "InstanceType": group["InstanceType"].removeprefix("kafka."),
            "NodeARN": f"{cluster.arn.replace(':cluster/', ':node/')}/{number + 1}",
            "BrokerNodeInfo": {
                "BrokerId": float(number + 1),
                "ClientSubnet": subnets[number % len(subnets)],
                "CurrentBrokerSoftwareInfo": cluster.about["CurrentBrokerSoftwareInfo"],
                "Endpoints": [_host(cluster, number + 1)],
            },
        }
        for number in range(cluster.about["NumberOfBrokerNodes"])
    ]
    return page(nodes, asked, "NodeInfoList")


def list_scram_secrets(msk: Msk, asked: Asked) -> Answer:
    """ListScramSecrets: always empty, because secrets cannot be associated here."""
    msk.provisioned(asked)
    return {"SecretArnList": []}


def list_kafka_versions(msk: Msk, asked: Asked) -> Answer:
    """ListKafkaVersions."""
    return page([{"Version": version, "Status": "ACTIVE"} for version in KAFKA_VERSIONS], asked, "KafkaVersions")


def describe_cluster_operation(msk: Msk, asked: Asked) -> Answer:
    """DescribeClusterOperation."""
    return {"ClusterOperationInfo": _operation(msk, asked)}


def describe_cluster_operation_v2(msk: Msk, asked: Asked) -> Answer:
    """DescribeClusterOperationV2."""
    done = _operation(msk, asked)
    shared = {key: done[key] for key in ("ClusterArn", "EndTime", "OperationArn", "OperationState", "OperationType")}
    details = {key: done[key] for key in ("OperationSteps", "SourceClusterInfo", "TargetClusterInfo")}
    return {"ClusterOperationInfo": {**shared, "ClusterType": PROVISIONED, "StartTime": done["CreationTime"], "Provisioned": details}}


def _operation(msk: Msk, asked: Asked) -> dict[str, Any]:
    arn = asked["ClusterOperationArn"]
    for cluster in msk.clusters.values():
        if arn in cluster.operations:
            return cluster.operations[arn]
    raise not_found(f"Operation not found: {arn}")


def _add(msk: Msk, asked: Asked, kind: str, about: dict[str, Any]) -> Cluster:
    name = asked["ClusterName"]
    if not _NAME.fullmatch(name):
        raise bad_request(f"The name {name} has other than letters, digits and hyphens", "clusterName")
    if any(other.name == name for other in msk.clusters.values()):
        raise conflict(f"A cluster with the name {name} exists")
    arn = new_arn(msk.place, "cluster", name)
    if kind == SERVERLESS:
        # Source: MSK's developer guide, "Create a cluster": the ARN of a serverless cluster ends in -s and a number.
        arn = re.sub(r"-(\d+)$", r"-s\1", arn)
    made = Cluster(msk.place, name, arn, kind, dict(asked.get("Tags", {})), about, now(), new_version())
    msk.clusters[arn] = made
    return made


def _serverless(msk: Msk, asked: Mapping[str, Any]) -> dict[str, Any]:
    if not asked["VpcConfigs"]:
        raise bad_request("A serverless cluster needs a VPC", "vpcConfigs")
    for config in asked["VpcConfigs"]:
        if len(config["SubnetIds"]) < 2:
            raise bad_request("Specify at least two subnets in different Availability Zones", "subnetIds")
        network(msk.place, config["SubnetIds"], config.get("SecurityGroupIds", ()))
    if not asked.get("ClientAuthentication", {}).get("Sasl", {}).get("Iam", {}).get("Enabled"):
        raise bad_request("A serverless cluster needs IAM authentication", "clientAuthentication")
    return dict(asked)


def _common(cluster: Cluster) -> dict[str, Any]:
    return {
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "CreationTime": cluster.since,
        "CurrentVersion": cluster.version,
        "State": "ACTIVE",
        "Tags": cluster.tags,
    }


def _described_v2(cluster: Cluster) -> dict[str, Any]:
    return {**_common(cluster), "ClusterType": cluster.kind, cluster.kind.capitalize(): cluster.about}


def _named(msk: Msk, asked: Asked) -> list[Cluster]:
    return [one for one in msk.clusters.values() if one.name.startswith(asked.get("ClusterNameFilter", ""))]


def _listeners(cluster: Cluster) -> set[str]:
    if cluster.kind == SERVERLESS:
        return {"iam"}
    ways = allowed_ways(cluster.about.get("ClientAuthentication"))
    wire = cluster.about["EncryptionInfo"]["EncryptionInTransit"]["ClientBroker"]
    listeners = ways & {"iam", "scram"}
    if wire != "TLS" and "unauthenticated" in ways:
        listeners.add("plain")
    if wire != "PLAINTEXT" and ways & {"unauthenticated", "tls"}:
        listeners.add("tls")
    return listeners


def _addresses(cluster: Cluster, way: str) -> str:
    """The brokers that run on this machine, if any; otherwise names in MSK's format that do not resolve."""
    if real := os.environ.get(BROKERS_VARIABLE):
        return real
    if cluster.kind == SERVERLESS:
        return f"boot-{_short(cluster)}.c1.kafka-serverless.{cluster.place.region}.amazonaws.com:{PORTS[way]}"
    count = min(NAMED_BROKERS, cluster.about["NumberOfBrokerNodes"])
    return ",".join(f"{_host(cluster, number)}:{PORTS[way]}" for number in range(1, count + 1))


def _host(cluster: Cluster, number: int) -> str:
    return f"b-{number}.{cluster.name.replace('-', '')[:20].lower()}.{_short(cluster)}.c2.kafka.{cluster.place.region}.amazonaws.com"


def _short(cluster: Cluster) -> str:
    return cluster.arn.rpartition("/")[2].replace("-", "")[:6]


OPERATIONS: Mapping[str, Operation] = {
    "CreateCluster": create_cluster,
    "CreateClusterV2": create_cluster_v2,
    "DescribeCluster": describe_cluster,
    "DescribeClusterV2": describe_cluster_v2,
    "ListClusters": list_clusters,
    "ListClustersV2": list_clusters_v2,
    "DeleteCluster": delete_cluster,
    "GetBootstrapBrokers": get_bootstrap_brokers,
    "ListNodes": list_nodes,
    "ListScramSecrets": list_scram_secrets,
    "ListKafkaVersions": list_kafka_versions,
    "DescribeClusterOperation": describe_cluster_operation,
    "DescribeClusterOperationV2": describe_cluster_operation_v2,
}
