"""Brokers of a provisioned cluster: validation and defaults."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Asked, Place
from penstock.scripts.emulation.msk.configurations import software
from penstock.scripts.emulation.msk.state import Msk, bad_request, need_kafka_version
from penstock.sizing.kafka.broker_types import UNMEASURED, broker_types

# Source: MSK's API reference, BrokerNodeGroupInfo: default volume size of a standard broker, in GiB.
DEFAULT_VOLUME_GIB = 1000


def described(msk: Msk, asked: Asked) -> dict[str, Any]:
    """Return the description of a new provisioned cluster.

    Args:
        msk: MSK of its account and region.
        asked: ProvisionedRequest, or CreateClusterRequest, which has the same members.

    Returns:
        The API's ``Provisioned``.

    Raises:
        Refused: BadRequestException.
    """
    need_kafka_version(asked["KafkaVersion"])
    group = _group(msk.place, asked["BrokerNodeGroupInfo"])
    need_broker_count(group, asked["NumberOfBrokerNodes"])
    encryption = _encryption(msk.place, asked.get("EncryptionInfo", {}))
    authentication = asked.get("ClientAuthentication")
    need_authentication(authentication, encryption)
    optional = {key: asked[key] for key in ("Rebalancing",) if key in asked}
    return {
        "BrokerNodeGroupInfo": group,
        "CurrentBrokerSoftwareInfo": software(msk, asked["KafkaVersion"], asked.get("ConfigurationInfo")),
        "EncryptionInfo": encryption,
        "EnhancedMonitoring": asked.get("EnhancedMonitoring", "DEFAULT"),
        "OpenMonitoring": asked.get("OpenMonitoring") or NOT_MONITORED,
        "NumberOfBrokerNodes": asked["NumberOfBrokerNodes"],
        "CustomerActionStatus": "NONE",
        **({"ClientAuthentication": authentication} if authentication else {}),
        **({"LoggingInfo": logging_info(msk.place, asked["LoggingInfo"])} if "LoggingInfo" in asked else {}),
        **({} if is_express(group["InstanceType"]) else {"StorageMode": asked.get("StorageMode", "LOCAL")}),
        **optional,
    }


NOT_MONITORED = {"Prometheus": {"JmxExporter": {"EnabledInBroker": False}, "NodeExporter": {"EnabledInBroker": False}}}


def is_express(kind: str) -> bool:
    """Whether MSK manages the storage of this broker type."""
    return kind.startswith("express.")


def need_broker_type(kind: str) -> None:
    """Check that MSK has the broker type.

    Raises:
        Refused: BadRequestException.
    """
    if kind not in {known.name for known in broker_types()} | set(UNMEASURED):
        raise bad_request(f"Unsupported instance type {kind}", "instanceType")


def need_broker_count(group: Mapping[str, Any], count: int) -> None:
    """Check that all zones have the same number of brokers.

    Raises:
        Refused: BadRequestException.
    """
    zones = len(group["ClientSubnets"])
    if count % zones:
        message = "The number of broker nodes must be a multiple of Availability Zones in the Client Subnets parameter"
        raise bad_request(f"{message}: {count} in {zones}", "numberOfBrokerNodes")


def need_authentication(asked: Mapping[str, Any] | None, encryption: Mapping[str, Any]) -> None:
    """Check that at least one way of client access is enabled, and that authentication is used only with TLS.

    Raises:
        Refused: BadRequestException.
    """
    plain = encryption["EncryptionInTransit"]["ClientBroker"] == "PLAINTEXT"
    ways = allowed_ways(asked)
    if not ways:
        raise bad_request("At least one way to authenticate must be enabled", "clientAuthentication")
    if plain and ways - {"unauthenticated"}:
        raise bad_request("Clients that authenticate need TLS or TLS_PLAINTEXT between them and the brokers", "encryptionInTransit")


def allowed_ways(asked: Mapping[str, Any] | None) -> set[str]:
    """Enabled client authentication: unauthenticated, iam, scram, tls; unauthenticated by default."""
    if not asked:
        return {"unauthenticated"}
    sasl = asked.get("Sasl", {})
    parts = {"unauthenticated": asked.get("Unauthenticated"), "iam": sasl.get("Iam"), "scram": sasl.get("Scram"), "tls": asked.get("Tls")}
    return {way for way, part in parts.items() if part and (part.get("Enabled") or part.get("CertificateAuthorityArnList"))}


def logging_info(place: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the broker logs; their destinations must exist.

    Raises:
        Refused: BadRequestException.
    """
    logs = asked["BrokerLogs"]
    watch, bucket = logs.get("CloudWatchLogs", {}), logs.get("S3", {})
    if watch.get("Enabled") and not neighbours.log_group_exists(place, watch.get("LogGroup", "")):
        raise bad_request(f"The log group {watch.get('LogGroup')} does not exist", "logGroup")
    if bucket.get("Enabled") and not neighbours.bucket_exists(place, bucket.get("Bucket", "")):
        raise bad_request(f"The bucket {bucket.get('Bucket')} does not exist", "bucket")
    return dict(asked)


def network(place: Place, subnet_ids: Sequence[str], group_ids: Sequence[str]) -> str:
    """Return the VPC of a cluster's subnets.

    Raises:
        Refused: BadRequestException.
    """
    subnets = neighbours.subnets(place, subnet_ids)
    if missing := [id for id in subnet_ids if id not in subnets]:
        raise bad_request(f"One or more subnets are not valid: {', '.join(missing)}", "clientSubnets")
    if len({subnet.zone for subnet in subnets.values()}) != len(subnet_ids):
        raise bad_request("Each client subnet must be in another Availability Zone", "clientSubnets")
    vpcs = {subnet.vpc for subnet in subnets.values()}
    if len(vpcs) != 1:
        raise bad_request("The client subnets must be in one VPC", "clientSubnets")
    (vpc,) = vpcs
    for id in group_ids:
        if neighbours.security_group_vpc(place, id) != vpc:
            raise bad_request(f"The security group {id} is not in the VPC {vpc}", "securityGroups")
    return vpc


def _group(place: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    kind, subnets = asked["InstanceType"], asked["ClientSubnets"]
    need_broker_type(kind)
    if len(subnets) not in (2, 3):
        raise bad_request("Specify either two or three client subnets", "clientSubnets")
    if is_express(kind) and len(subnets) != 3:
        raise bad_request("Express brokers need three client subnets", "clientSubnets")
    network(place, subnets, asked.get("SecurityGroups", ()))
    return {
        "BrokerAZDistribution": "DEFAULT",
        **asked,
        "ConnectivityInfo": {"PublicAccess": {"Type": "DISABLED"}, **asked.get("ConnectivityInfo", {})},
        **_storage(kind, asked.get("StorageInfo")),
    }


def _storage(kind: str, asked: Mapping[str, Any] | None) -> dict[str, Any]:
    if is_express(kind):
        if asked:
            raise bad_request("The storage of express brokers cannot be specified", "storageInfo")
        return {}
    volume = {"VolumeSize": DEFAULT_VOLUME_GIB, **(asked or {}).get("EbsStorageInfo", {})}
    return {"StorageInfo": {"EbsStorageInfo": volume}}


def _encryption(place: Place, asked: Mapping[str, Any]) -> dict[str, Any]:
    key = asked.get("EncryptionAtRest", {}).get("DataVolumeKMSKeyId")
    if key and not neighbours.key_exists(place, key):
        raise bad_request(f"The KMS key {key} does not exist or is disabled", "dataVolumeKMSKeyId")
    own = f"arn:{place.partition}:kms:{place.region}:{place.account}:key/{uuid.uuid5(uuid.NAMESPACE_DNS, 'aws/kafka')}"
    transit = {"ClientBroker": "TLS", "InCluster": True, **asked.get("EncryptionInTransit", {})}
    return {"EncryptionAtRest": {"DataVolumeKMSKeyId": key or own}, "EncryptionInTransit": transit}
