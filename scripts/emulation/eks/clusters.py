"""EKS clusters: create, describe, update, delete."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Answer, Asked, Operation, Place
from penstock.scripts.emulation.eks.state import Cluster, Eks, in_use, invalid, invalid_request, need_role, new_id, not_found, now, page

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
# Accepted Kubernetes minor versions. Source: EKS's user guide, "Kubernetes versions": 1.33 left standard support in 2026.
VERSIONS = ("1.32", "1.33", "1.34", "1.35")
STANDARD = ("1.34", "1.35")
ANYWHERE = "0.0.0.0/0"
# Source: EKS's user guide, "Cluster API server endpoint": no reserved addresses in the CIDRs of the public endpoint.
_PRIVATE = tuple(ipaddress.IPv4Network(one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8"))
_AUTHENTICATION = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def create_cluster(eks: Eks, asked: Asked) -> Answer:
    """CreateCluster: active at once."""
    name = asked["name"]
    if name in eks.clusters:
        raise in_use(f"Cluster already exists with name: {name}", clusterName=name)
    version = asked.get("version", VERSIONS[-1])
    if version not in VERSIONS:
        raise invalid(f"unsupported Kubernetes version {version}", clusterName=name)
    need_role(eks.place, asked["roleArn"], service="eks.amazonaws.com")
    vpc = _network(eks.place, asked["resourcesVpcConfig"])
    encryption = _encryption(eks.place, asked.get("encryptionConfig", []))
    group = _security_group(eks.place, name, vpc["vpcId"])
    at, id = eks.place, new_id(32).upper()
    description = {
        "name": name,
        "arn": f"arn:{at.partition}:eks:{at.region}:{at.account}:cluster/{name}",
        "createdAt": now(),
        "version": version,
        "endpoint": f"https://{id}.gr7.{at.region}.eks.amazonaws.com",
        "roleArn": asked["roleArn"],
        "resourcesVpcConfig": {**vpc, "clusterSecurityGroupId": group},
        "kubernetesNetworkConfig": _service_network(eks.place, vpc["vpcId"], asked.get("kubernetesNetworkConfig", {})),
        "logging": _logging(asked.get("logging", {}), ()),
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{at.region}.amazonaws.com/id/{id}"}},
        "status": "ACTIVE",
        "certificateAuthority": {"data": _certificate(id)},
        "platformVersion": "eks.1",
        "tags": dict(asked.get("tags", {})),
        "encryptionConfig": encryption,
        "health": {"issues": []},
        "accessConfig": _access(asked.get("accessConfig", {})),
        "upgradePolicy": asked.get("upgradePolicy", {"supportType": "EXTENDED"}),
        "deletionProtection": asked.get("deletionProtection", False),
        **{key: asked[key] for key in ("zonalShiftConfig", "computeConfig", "storageConfig", "remoteNetworkConfig") if key in asked},
    }
    eks.clusters[name] = Cluster(eks.place, description)
    return {"cluster": description}


def describe_cluster(eks: Eks, asked: Asked) -> Answer:
    """DescribeCluster."""
    return {"cluster": eks.cluster(asked).description}


def list_clusters(eks: Eks, asked: Asked) -> Answer:
    """ListClusters."""
    return page(sorted(eks.clusters), asked, "clusters")


def delete_cluster(eks: Eks, asked: Asked) -> Answer:
    """DeleteCluster: also deletes its security group; refused while it has node groups or deletion protection."""
    cluster = eks.cluster(asked)
    if cluster.node_groups:
        raise in_use("Cluster has nodegroups attached", clusterName=cluster.name, nodegroupName=",".join(sorted(cluster.node_groups)))
    if cluster.description["deletionProtection"]:
        raise invalid_request("Cluster has deletion protection enabled", clusterName=cluster.name)
    neighbours.drop_security_group(eks.place, cluster.description["resourcesVpcConfig"]["clusterSecurityGroupId"])
    del eks.clusters[cluster.name]
    return {"cluster": {**cluster.description, "status": "DELETING"}}


def update_cluster_config(eks: Eks, asked: Asked) -> Answer:
    """UpdateClusterConfig: one type of change per request; a request without a change is refused."""
    cluster = eks.cluster(asked)
    kinds = [kind for kind in _CHANGES if kind in asked]
    if len(kinds) != 1:
        raise invalid(f"A request changes one of {', '.join(_CHANGES)}; this one has {len(kinds)}", clusterName=cluster.name)
    (kind,) = kinds
    field, update_type, change = _CHANGES[kind]
    before = cluster.description.get(field)
    after = change(cluster, asked[kind])
    if after == before:
        raise invalid("The cluster is already at the desired configuration", clusterName=cluster.name)
    cluster.description[field] = after
    return cluster.note_update(update_type, {})


def update_cluster_version(eks: Eks, asked: Asked) -> Answer:
    """UpdateClusterVersion: only to the next minor version."""
    cluster = eks.cluster(asked)
    version, before = asked.get("version", ""), cluster.description["version"]
    if version not in VERSIONS or VERSIONS.index(version) != VERSIONS.index(before) + 1:
        raise invalid(f"Unsupported Kubernetes minor version update from {before} to {version}", clusterName=cluster.name)
    cluster.description["version"] = version
    return cluster.note_update("VersionUpdate", {"Version": version})


def associate_encryption_config(eks: Eks, asked: Asked) -> Answer:
    """AssociateEncryptionConfig: only once per cluster."""
    cluster = eks.cluster(asked)
    if cluster.description["encryptionConfig"]:
        raise invalid_request("Encryption is already enabled on this cluster", clusterName=cluster.name)
    cluster.description["encryptionConfig"] = _encryption(eks.place, asked["encryptionConfig"])
    return cluster.note_update("AssociateEncryptionConfig", {})


def describe_update(eks: Eks, asked: Asked) -> Answer:
    """DescribeUpdate."""
    cluster = eks.cluster(asked)
    if asked["updateId"] not in cluster.updates:
        raise not_found(f"No update found for ID: {asked['updateId']}", clusterName=cluster.name)
    return {"update": cluster.updates[asked["updateId"]]}


def describe_cluster_versions(eks: Eks, asked: Asked) -> Answer:
    """DescribeClusterVersions."""
    wanted = asked.get("clusterVersions") or VERSIONS
    known = [_version(version) for version in reversed(VERSIONS) if version in wanted]
    status = asked.get("versionStatus")
    chosen = [version for version in known if status in (None, version["versionStatus"])]
    chosen = [version for version in chosen if version["defaultVersion"] or not asked.get("defaultOnly")]
    return page(chosen, asked, "clusterVersions")


def _version(version: str) -> dict[str, Any]:
    supported = "STANDARD_SUPPORT" if version in STANDARD else "EXTENDED_SUPPORT"
    named = {"clusterVersion": version, "clusterType": "eks", "defaultPlatformVersion": "eks.1", "defaultVersion": version == VERSIONS[-1]}
    return {**named, "versionStatus": supported, "status": supported.lower().replace("_", "-")}


def _network(place: Place, config: Mapping[str, Any]) -> dict[str, Any]:
    """The network of the control plane; its subnets and security groups must exist."""
    ids = config.get("subnetIds", [])
    subnets = neighbours.subnets(place, ids)
    if missing := [id for id in ids if id not in subnets]:
        raise invalid(f"The subnet ID '{missing[0]}' does not exist (Service: AmazonEC2; Error Code: InvalidSubnetID.NotFound)")
    if len({subnet.zone for subnet in subnets.values()}) < 2:
        raise invalid("Subnets specified must be in at least two different AZs")
    vpcs = {subnet.vpc for subnet in subnets.values()}
    if len(vpcs) != 1:
        raise invalid("Subnets specified must be in the same VPC")
    (vpc,) = vpcs
    groups = config.get("securityGroupIds", [])
    for group in groups:
        if neighbours.security_group_vpc(place, group) != vpc:
            raise invalid(f"Security group(s) [{group}] not found in the VPC {vpc}")
    return {"subnetIds": list(ids), "securityGroupIds": list(groups), "vpcId": vpc, **_endpoint(config, {})}


def _endpoint(config: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    public = config.get("endpointPublicAccess", before.get("endpointPublicAccess", True))
    private = config.get("endpointPrivateAccess", before.get("endpointPrivateAccess", False))
    if not public and not private:
        raise invalid("Private and public endpoint access cannot be false")
    cidrs = list(config.get("publicAccessCidrs") or (before.get("publicAccessCidrs", [ANYWHERE]) if public else []))
    for cidr in cidrs:
        _need_public_cidr(cidr)
    return {"endpointPublicAccess": public, "endpointPrivateAccess": private, "publicAccessCidrs": cidrs}


def _need_public_cidr(cidr: str) -> None:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError:
        raise invalid(f"The following CIDRs are invalid: {cidr}") from None
    if any(network.overlaps(private) for private in _PRIVATE) and cidr != ANYWHERE:
        raise invalid(f"The following CIDRs are not allowed in publicAccessCidrs: {cidr}")


def _service_network(place: Place, vpc: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Services get 10.100.0.0/16, or 172.20.0.0/16 if the VPC is in 10.0.0.0/8. Source: EKS's API reference."""
    own = ipaddress.IPv4Network(neighbours.vpc_cidr(place, vpc) or "10.0.0.0/16")
    free = "172.20.0.0/16" if own.subnet_of(_PRIVATE[0]) else "10.100.0.0/16"
    cidr = config.get("serviceIpv4Cidr", free)
    services = ipaddress.IPv4Network(cidr)
    if not services.is_private or not 12 <= services.prefixlen <= 24:
        raise invalid(f"serviceIpv4Cidr {cidr} must be a private range between /24 and /12")
    if services.overlaps(own):
        raise invalid(f"serviceIpv4Cidr {cidr} overlaps with the VPC's {own}")
    balancing = config.get("elasticLoadBalancing", {"enabled": False})
    return {"serviceIpv4Cidr": cidr, "ipFamily": config.get("ipFamily", "ipv4"), "elasticLoadBalancing": balancing}


def _encryption(place: Place, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    for config in asked:
        if config.get("resources") != ["secrets"]:
            raise invalid(f"Encryption is for secrets, not for {config.get('resources')}")
        key = config.get("provider", {}).get("keyArn", "")
        if not neighbours.key_exists(place, key):
            raise invalid(f"The keyArn in encryptionConfig provider {key} is invalid")
    return [dict(config) for config in asked]


def _security_group(place: Place, name: str, vpc: str) -> str:
    """Create the cluster's security group in the VPC, with EKS's tags."""
    full_name = f"eks-cluster-sg-{name}-{int(new_id(8), 36) % 10**9}"
    tags = {"Name": full_name, "aws:eks:cluster-name": name, f"kubernetes.io/cluster/{name}": "owned"}
    about = "EKS created security group applied to the control plane's interfaces and to managed workloads"
    return neighbours.make_security_group(place, vpc=vpc, name=full_name, description=about, tags=tags)


def _logging(asked: Mapping[str, Any], before: Sequence[str]) -> dict[str, Any]:
    enabled = set(before)
    for setup in asked.get("clusterLogging", []):
        enabled = enabled | set(setup["types"]) if setup["enabled"] else enabled - set(setup["types"])
    parts = ((True, [kind for kind in LOG_TYPES if kind in enabled]), (False, [kind for kind in LOG_TYPES if kind not in enabled]))
    return {"clusterLogging": [{"types": types, "enabled": on} for on, types in parts if types]}


def _access(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Source: EKS's API reference, CreateAccessConfigRequest: defaults are CONFIG_MAP, and admin permissions for the creator of the
    cluster.
    """
    return {
        "bootstrapClusterCreatorAdminPermissions": asked.get("bootstrapClusterCreatorAdminPermissions", True),
        "authenticationMode": asked.get("authenticationMode", _AUTHENTICATION[0]),
    }


def _certificate(id: str) -> str:
    """A placeholder in the format of a certificate, without a key: no server listens at the endpoint."""
    body = base64.b64encode(id.encode() * 20).decode()
    pem = "\n".join(["-----BEGIN CERTIFICATE-----", *re.findall(".{1,64}", body), "-----END CERTIFICATE-----", ""])
    return base64.b64encode(pem.encode()).decode()


def _change_network(cluster: Cluster, asked: Mapping[str, Any]) -> dict[str, Any]:
    before = cluster.description["resourcesVpcConfig"]
    moved = {key: asked.get(key, before[key]) for key in ("subnetIds", "securityGroupIds")}
    network = _network(cluster.place, {**moved, **_endpoint(asked, before)})
    if network["vpcId"] != before["vpcId"]:
        raise invalid("Subnets specified must be in the cluster's VPC", clusterName=cluster.name)
    return {**network, "clusterSecurityGroupId": before["clusterSecurityGroupId"]}


def _change_logging(cluster: Cluster, asked: Mapping[str, Any]) -> dict[str, Any]:
    before = [kind for setup in cluster.description["logging"]["clusterLogging"] if setup["enabled"] for kind in setup["types"]]
    return _logging(asked, before)


def _change_access(cluster: Cluster, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The mode can change only from the ConfigMap to the API."""
    before = cluster.description["accessConfig"]
    mode = asked["authenticationMode"]
    if _AUTHENTICATION.index(mode) < _AUTHENTICATION.index(before["authenticationMode"]):
        raise invalid(f"Unsupported authentication mode update from {before['authenticationMode']} to {mode}", clusterName=cluster.name)
    return {**before, "authenticationMode": mode}


def _change_service_network(cluster: Cluster, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**cluster.description["kubernetesNetworkConfig"], **asked}


def _replace(cluster: Cluster, asked: Any) -> Any:
    return asked


# Member of the request, member of the description, type of the update, and conversion from the first to the second.
_CHANGES: Mapping[str, tuple[str, str, Any]] = {
    "resourcesVpcConfig": ("resourcesVpcConfig", "VpcConfigUpdate", _change_network),
    "logging": ("logging", "LoggingUpdate", _change_logging),
    "accessConfig": ("accessConfig", "AccessConfigUpdate", _change_access),
    "upgradePolicy": ("upgradePolicy", "UpgradePolicyUpdate", _replace),
    "zonalShiftConfig": ("zonalShiftConfig", "ZonalShiftConfigUpdate", _replace),
    "deletionProtection": ("deletionProtection", "DeletionProtectionUpdate", _replace),
    "kubernetesNetworkConfig": ("kubernetesNetworkConfig", "AutoModeUpdate", _change_service_network),
    "computeConfig": ("computeConfig", "AutoModeUpdate", _replace),
    "storageConfig": ("storageConfig", "AutoModeUpdate", _replace),
    "remoteNetworkConfig": ("remoteNetworkConfig", "RemoteNetworkConfigUpdate", _replace),
}

OPERATIONS: Mapping[str, Operation] = {
    "CreateCluster": create_cluster,
    "DescribeCluster": describe_cluster,
    "ListClusters": list_clusters,
    "DeleteCluster": delete_cluster,
    "UpdateClusterConfig": update_cluster_config,
    "UpdateClusterVersion": update_cluster_version,
    "AssociateEncryptionConfig": associate_encryption_config,
    "DescribeUpdate": describe_update,
    "DescribeClusterVersions": describe_cluster_versions,
}
