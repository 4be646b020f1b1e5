"""Managed node groups, without instances."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.eks.access import admit_nodes, dismiss_nodes
from penstock.scripts.emulation.eks.state import Cluster, Eks, in_use, invalid, need_role, not_found, now, page

_NOT_WITH_TEMPLATE = ("diskSize", "remoteAccess")
_KEPT = ("labels", "taints", "remoteAccess", "nodeRepairConfig", "warmPoolConfig")


def create_nodegroup(eks: Eks, asked: Asked) -> Answer:
    """CreateNodegroup: active at once; its role may join the cluster."""
    cluster, name = eks.cluster(asked), asked["nodegroupName"]
    if name in cluster.node_groups:
        message = f"NodeGroup already exists with name {name} and cluster name {cluster.name}"
        raise in_use(message, clusterName=cluster.name, nodegroupName=name)
    need_role(eks.place, asked["nodeRole"], service="ec2.amazonaws.com")
    _need_subnets(cluster, asked)
    id = str(uuid.uuid4())
    description = {
        "nodegroupName": name,
        "nodegroupArn": cluster.arn("nodegroup", name, id),
        "clusterName": cluster.name,
        "version": _version(cluster, asked.get("version")),
        "releaseVersion": asked.get("releaseVersion") or _release(cluster.description["version"]),
        "createdAt": now(),
        "modifiedAt": now(),
        "status": "ACTIVE",
        "capacityType": asked.get("capacityType", "ON_DEMAND"),
        "scalingConfig": _scaling(asked.get("scalingConfig", {})),
        "subnets": list(asked["subnets"]),
        "nodeRole": asked["nodeRole"],
        "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{id}"}]},
        "health": {"issues": []},
        "updateConfig": asked.get("updateConfig", {"maxUnavailable": 1}),
        "tags": dict(asked.get("tags", {})),
        **_machines(cluster, asked),
        # Members that were not requested are omitted: a node group without an SSH key has no remoteAccess.
        **{key: asked[key] for key in _KEPT if key in asked},
    }
    cluster.node_groups[name] = description
    admit_nodes(cluster, asked["nodeRole"])
    return {"nodegroup": description}


def describe_nodegroup(eks: Eks, asked: Asked) -> Answer:
    """DescribeNodegroup."""
    return {"nodegroup": _node_group(eks.cluster(asked), asked)}


def list_nodegroups(eks: Eks, asked: Asked) -> Answer:
    """ListNodegroups."""
    return page(sorted(eks.cluster(asked).node_groups), asked, "nodegroups")


def delete_nodegroup(eks: Eks, asked: Asked) -> Answer:
    """DeleteNodegroup: also deletes the access entry of its role, unless another group uses it."""
    cluster = eks.cluster(asked)
    gone = _node_group(cluster, asked)
    del cluster.node_groups[gone["nodegroupName"]]
    if all(other["nodeRole"] != gone["nodeRole"] for other in cluster.node_groups.values()):
        dismiss_nodes(cluster, gone["nodeRole"])
    return {"nodegroup": {**gone, "status": "DELETING"}}


def update_nodegroup_config(eks: Eks, asked: Asked) -> Answer:
    """UpdateNodegroupConfig: size, labels, taints, update and repair settings."""
    cluster = eks.cluster(asked)
    group = _node_group(cluster, asked)
    if "scalingConfig" in asked:
        group["scalingConfig"] = _scaling({**group["scalingConfig"], **asked["scalingConfig"]})
    if "labels" in asked:
        group["labels"] = _changed_labels(group.get("labels", {}), asked["labels"])
    if "taints" in asked:
        group["taints"] = _changed_taints(group.get("taints", []), asked["taints"])
    for key in ("updateConfig", "nodeRepairConfig", "warmPoolConfig"):
        if key in asked:
            group[key] = asked[key]
    group["modifiedAt"] = now()
    return cluster.note_update("ConfigUpdate", {})


def update_nodegroup_version(eks: Eks, asked: Asked) -> Answer:
    """UpdateNodegroupVersion: another version of Kubernetes, of the AMI or of the launch template."""
    cluster = eks.cluster(asked)
    group = _node_group(cluster, asked)
    version = _version(cluster, asked.get("version"))
    group.update(version=version, releaseVersion=asked.get("releaseVersion") or _release(version), modifiedAt=now())
    if "launchTemplate" in asked:
        group["launchTemplate"] = _template(cluster, asked["launchTemplate"])
    return cluster.note_update("VersionUpdate", {"Version": version, "ReleaseVersion": group["releaseVersion"]})


def _node_group(cluster: Cluster, asked: Asked) -> dict[str, Any]:
    name = asked["nodegroupName"]
    if name not in cluster.node_groups:
        raise not_found(f"No node group found for name: {name}.", clusterName=cluster.name, nodegroupName=name)
    return cluster.node_groups[name]


def _need_subnets(cluster: Cluster, asked: Asked) -> None:
    subnets = neighbours.subnets(cluster.place, asked["subnets"])
    vpc = cluster.description["resourcesVpcConfig"]["vpcId"]
    for id in asked["subnets"]:
        if id not in subnets or subnets[id].vpc != vpc:
            raise invalid(f"The subnet ID '{id}' does not exist in the cluster's VPC {vpc}", clusterName=cluster.name)


def _version(cluster: Cluster, asked: str | None) -> str:
    """Nodes must not be newer than the control plane."""
    own: str = cluster.description["version"]
    version = asked or own
    if _minor(version) > _minor(own):
        raise invalid(f"Nodes of Kubernetes {version} can't join a cluster of {own}", clusterName=cluster.name)
    return version


def _minor(version: str) -> int:
    _, _, minor = version.partition(".")
    return int(minor) if minor.isdigit() else 1000


def _release(version: str) -> str:
    return f"{version}.0-20261101"


def _scaling(asked: Mapping[str, int]) -> dict[str, int]:
    size = {"minSize": 1, "maxSize": 2, "desiredSize": 2, **asked}
    if not size["minSize"] <= size["desiredSize"] <= size["maxSize"]:
        raise invalid(f"Minimum capacity {size['minSize']}, desired {size['desiredSize']} and maximum {size['maxSize']} are out of order")
    return size


def _machines(cluster: Cluster, asked: Asked) -> dict[str, Any]:
    """Instance types, AMI type and disk size, unless a launch template sets them."""
    machines: dict[str, Any] = {}
    if "launchTemplate" in asked:
        if both := [key for key in _NOT_WITH_TEMPLATE if key in asked]:
            raise invalid(f"{both[0]} must be specified within the launch template", clusterName=cluster.name)
        machines["launchTemplate"] = _template(cluster, asked["launchTemplate"])
    else:
        machines["diskSize"] = asked.get("diskSize", 20)
    kinds = list(asked.get("instanceTypes") or ([] if "launchTemplate" in asked else ["t3.medium"]))
    if kinds:
        machines["instanceTypes"] = kinds
    return {**machines, "amiType": _image(cluster, asked.get("amiType"), kinds)}


def _template(cluster: Cluster, asked: Mapping[str, str]) -> dict[str, str]:
    template = neighbours.launch_template(cluster.place, asked)
    if template is None:
        raise invalid(f"Launch template {asked.get('id') or asked.get('name')} does not exist", clusterName=cluster.name)
    return {**template, "version": asked.get("version", "1")}


def _image(cluster: Cluster, asked: str | None, kinds: list[str]) -> str:
    known = {kind: neighbours.instance_architecture(cluster.place, kind) for kind in kinds}
    if unknown := [kind for kind, architecture in known.items() if architecture is None]:
        raise invalid(f"The following supplied instance types do not exist: {unknown}", clusterName=cluster.name)
    architectures = set(known.values())
    image = asked or ("AL2023_ARM_64_STANDARD" if architectures == {"arm64"} else "AL2023_x86_64_STANDARD")
    wanted = "arm64" if "ARM_64" in image else "x86_64"
    if image != "CUSTOM" and (wrong := [kind for kind, architecture in known.items() if architecture != wanted]):
        raise invalid(f"{wrong} is not a valid instance type for requested amiType {image}", clusterName=cluster.name)
    return image


def _changed_labels(before: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, str]:
    kept = {key: value for key, value in before.items() if key not in asked.get("removeLabels", [])}
    return {**kept, **asked.get("addOrUpdateLabels", {})}


def _changed_taints(before: list[Mapping[str, str]], asked: Mapping[str, Any]) -> list[Mapping[str, str]]:
    changed = [*asked.get("removeTaints", []), *asked.get("addOrUpdateTaints", [])]
    gone = {(taint["key"], taint["effect"]) for taint in changed}
    return [*(taint for taint in before if (taint["key"], taint["effect"]) not in gone), *asked.get("addOrUpdateTaints", [])]


OPERATIONS: Mapping[str, Operation] = {
    "CreateNodegroup": create_nodegroup,
    "DescribeNodegroup": describe_nodegroup,
    "ListNodegroups": list_nodegroups,
    "DeleteNodegroup": delete_nodegroup,
    "UpdateNodegroupConfig": update_nodegroup_config,
    "UpdateNodegroupVersion": update_nodegroup_version,
}
