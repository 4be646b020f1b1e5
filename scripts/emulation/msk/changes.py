"""Updates of a provisioned cluster: operations that complete immediately."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.msk.brokers import (
    NOT_MONITORED,
    is_express,
    logging_info,
    need_authentication,
    need_broker_count,
    need_broker_type,
)
from penstock.scripts.emulation.msk.configurations import software
from penstock.scripts.emulation.msk.state import KAFKA_VERSIONS, Cluster, Msk, bad_request, need_kafka_version

# Selects all brokers of a cluster in a request. Source: MSK's API reference, BrokerEBSVolumeInfo.
ALL_BROKERS = "All"


def update_broker_storage(msk: Msk, asked: Asked) -> Answer:
    """UpdateBrokerStorage: larger volumes, for all brokers."""
    cluster = msk.provisioned(asked)
    (target, *others) = asked["TargetBrokerEBSVolumeInfo"] or [{}]
    if others or target.get("KafkaBrokerNodeId") != ALL_BROKERS:
        raise bad_request(f"The volumes of {ALL_BROKERS} brokers change together", "kafkaBrokerNodeId")
    return _grow(cluster, target.get("VolumeSizeGB"), target.get("ProvisionedThroughput"))


def update_storage(msk: Msk, asked: Asked) -> Answer:
    """UpdateStorage: larger volumes, their throughput, or tiered storage."""
    cluster = msk.provisioned(asked)
    mode = asked.get("StorageMode")
    if mode is None or mode == cluster.about.get("StorageMode"):
        return _grow(cluster, asked.get("VolumeSizeGB"), asked.get("ProvisionedThroughput"))
    if mode == "LOCAL":
        raise bad_request("Tiered storage cannot be turned off", "storageMode")
    return _set(cluster, "UPDATE_STORAGE", StorageMode=mode)


def update_broker_count(msk: Msk, asked: Asked) -> Answer:
    """UpdateBrokerCount: the same number in each zone; at most one fewer per zone."""
    cluster = msk.provisioned(asked)
    group, before, after = cluster.about["BrokerNodeGroupInfo"], cluster.about["NumberOfBrokerNodes"], asked["TargetNumberOfBrokerNodes"]
    need_broker_count(group, after)
    if after == before:
        raise bad_request(f"The cluster has {before} brokers already", "targetNumberOfBrokerNodes")
    if before - after > len(group["ClientSubnets"]):
        raise bad_request("At most one broker an Availability Zone can be removed at a time", "targetNumberOfBrokerNodes")
    return _set(cluster, "INCREASE_BROKER_COUNT" if after > before else "DECREASE_BROKER_COUNT", NumberOfBrokerNodes=after)


def update_broker_type(msk: Msk, asked: Asked) -> Answer:
    """UpdateBrokerType: another size or family; standard brokers stay standard."""
    cluster, kind = msk.provisioned(asked), asked["TargetInstanceType"]
    need_broker_type(kind)
    group = cluster.about["BrokerNodeGroupInfo"]
    before = group["InstanceType"]
    if kind == before or is_express(kind) != is_express(before):
        raise bad_request(f"The brokers can't change from {before} to {kind}", "targetInstanceType")
    cluster.about["BrokerNodeGroupInfo"] = {**group, "InstanceType": kind}
    return cluster.change("UPDATE_BROKER_TYPE", {"InstanceType": before}, {"InstanceType": kind})


def update_cluster_configuration(msk: Msk, asked: Asked) -> Answer:
    """UpdateClusterConfiguration."""
    cluster, info = msk.provisioned(asked), asked["ConfigurationInfo"]
    before = cluster.about["CurrentBrokerSoftwareInfo"]
    cluster.about["CurrentBrokerSoftwareInfo"] = software(msk, before["KafkaVersion"], info)
    return cluster.change("UPDATE_CLUSTER_CONFIGURATION", {}, {"ConfigurationInfo": info})


def update_cluster_kafka_version(msk: Msk, asked: Asked) -> Answer:
    """UpdateClusterKafkaVersion: to a later version with the same metadata mode."""
    cluster, version = msk.provisioned(asked), asked["TargetKafkaVersion"]
    need_kafka_version(version)
    before = cluster.about["CurrentBrokerSoftwareInfo"]
    old = before["KafkaVersion"]
    kraft = old.endswith(".kraft") == version.endswith(".kraft")
    if KAFKA_VERSIONS.index(version) <= KAFKA_VERSIONS.index(old) or not kraft:
        raise bad_request(f"Kafka can't change from {old} to {version}", "targetKafkaVersion")
    cluster.about["CurrentBrokerSoftwareInfo"] = software(msk, version, asked.get("ConfigurationInfo") or _info(before))
    return cluster.change("UPDATE_CLUSTER_KAFKA_VERSION", {"KafkaVersion": old}, {"KafkaVersion": version})


def update_monitoring(msk: Msk, asked: Asked) -> Answer:
    """UpdateMonitoring: metrics, Prometheus exporters and logs; omitted settings are kept."""
    cluster = msk.provisioned(asked)
    wanted = {key: asked[key] for key in ("EnhancedMonitoring", "OpenMonitoring") if key in asked}
    if "LoggingInfo" in asked:
        wanted["LoggingInfo"] = logging_info(msk.place, asked["LoggingInfo"])
    if all(cluster.about.get(key, NOT_MONITORED) == value for key, value in wanted.items()):
        raise bad_request("The monitoring is as it is asked for already")
    return _set(cluster, "UPDATE_MONITORING", **wanted)


def update_security(msk: Msk, asked: Asked) -> Answer:
    """UpdateSecurity: client authentication, and TLS between clients and brokers; the key at rest cannot be changed."""
    cluster = msk.provisioned(asked)
    encryption = cluster.about["EncryptionInfo"]
    if "EncryptionInfo" in asked:
        if "EncryptionAtRest" in asked["EncryptionInfo"]:
            raise bad_request("The key of a cluster's volumes cannot be changed", "encryptionAtRest")
        transit = {**encryption["EncryptionInTransit"], **asked["EncryptionInfo"].get("EncryptionInTransit", {})}
        encryption = {**encryption, "EncryptionInTransit": transit}
    authentication = asked.get("ClientAuthentication", cluster.about.get("ClientAuthentication"))
    need_authentication(authentication, encryption)
    wanted = {"EncryptionInfo": encryption, **({"ClientAuthentication": authentication} if authentication else {})}
    if all(cluster.about.get(key) == value for key, value in wanted.items()):
        raise bad_request("The security is as it is asked for already")
    return _set(cluster, "UPDATE_SECURITY", **wanted)


def update_connectivity(msk: Msk, asked: Asked) -> Answer:
    """UpdateConnectivity."""
    cluster, wanted = msk.provisioned(asked), asked.get("ConnectivityInfo", {})
    group = cluster.about["BrokerNodeGroupInfo"]
    cluster.about["BrokerNodeGroupInfo"] = {**group, "ConnectivityInfo": {**group["ConnectivityInfo"], **wanted}}
    return cluster.change("UPDATE_CONNECTIVITY", {}, {"ConnectivityInfo": wanted})


def update_rebalancing(msk: Msk, asked: Asked) -> Answer:
    """UpdateRebalancing: for express brokers."""
    cluster = msk.provisioned(asked)
    if not is_express(cluster.about["BrokerNodeGroupInfo"]["InstanceType"]):
        raise bad_request("Only clusters of express brokers rebalance by themselves", "rebalancing")
    return _set(cluster, "UPDATE_REBALANCING", Rebalancing=asked["Rebalancing"])


def _set(cluster: Cluster, kind: str, **wanted: Any) -> Answer:
    before = {key: cluster.about[key] for key in wanted if key in cluster.about}
    cluster.about.update(wanted)
    return cluster.change(kind, before, wanted)


def _grow(cluster: Cluster, size_gib: int | None, throughput: Mapping[str, Any] | None) -> Answer:
    group = cluster.about["BrokerNodeGroupInfo"]
    if is_express(group["InstanceType"]):
        raise bad_request("The storage of express brokers cannot be changed", "volumeSizeGB")
    volume = group["StorageInfo"]["EbsStorageInfo"]
    if size_gib is not None and size_gib < volume["VolumeSize"]:
        raise bad_request(f"A volume of {volume['VolumeSize']} GiB can't shrink to {size_gib}", "volumeSizeGB")
    wanted = {"VolumeSize": size_gib or volume["VolumeSize"], **({"ProvisionedThroughput": throughput} if throughput else {})}
    if {**volume, **wanted} == volume:
        raise bad_request("The volumes are as they are asked for already", "volumeSizeGB")
    cluster.about["BrokerNodeGroupInfo"] = {**group, "StorageInfo": {"EbsStorageInfo": {**volume, **wanted}}}
    named = {"KafkaBrokerNodeId": ALL_BROKERS}
    before = [{**named, "VolumeSizeGB": volume["VolumeSize"]}]
    return cluster.change(
        "UPDATE_BROKER_STORAGE", {"BrokerEBSVolumeInfo": before}, {"BrokerEBSVolumeInfo": [{**named, "VolumeSizeGB": wanted["VolumeSize"]}]}
    )


def _info(before: Mapping[str, Any]) -> dict[str, Any] | None:
    if "ConfigurationArn" not in before:
        return None
    return {"Arn": before["ConfigurationArn"], "Revision": before["ConfigurationRevision"]}


OPERATIONS: Mapping[str, Operation] = {
    "UpdateBrokerStorage": update_broker_storage,
    "UpdateStorage": update_storage,
    "UpdateBrokerCount": update_broker_count,
    "UpdateBrokerType": update_broker_type,
    "UpdateClusterConfiguration": update_cluster_configuration,
    "UpdateClusterKafkaVersion": update_cluster_kafka_version,
    "UpdateMonitoring": update_monitoring,
    "UpdateSecurity": update_security,
    "UpdateConnectivity": update_connectivity,
    "UpdateRebalancing": update_rebalancing,
}
