"""Karpenter's EC2NodeClass: settings common to all nodes of an environment.

Source: the CRD karpenter.k8s.aws_ec2nodeclasses of Karpenter 1.14.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.infra.parts.nodes import NODE_CLASS, Nodes
from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS
from penstock.sizing.planned_nodes import RootVolumePlan

API_VERSION = "karpenter.k8s.aws/v1"
# A pod is one hop farther from the metadata service than its node: with a hop limit of one, no pod can get the node's role.
METADATA_HOPS = 1
_MIB_OF_GIB = 1024
# Source: karpenter-provider-aws v1.14.1, the default block devices of the families. Bottlerocket has a separate volume for its system.
_ROOT, _BOTTLEROCKET_DATA = "/dev/xvda", "/dev/xvdb"
_BOTTLEROCKET_SYSTEM_GIB = 4


class Placement(NamedTuple):
    """Where nodes are launched, by ids: subnets that another account shares have no tags of this one.

    Args:
        subnet_ids: one per zone.
        security_group_ids: of their network interfaces.
    """

    subnet_ids: Sequence[str]
    security_group_ids: Sequence[str]


def node_class(
    nodes: Nodes,
    *,
    placement: Placement,
    role: str,
    tags: Mapping[str, str],
    performance: RootVolumePlan | None = None,
    isolated: bool = False,
    name: str = NODE_CLASS,
) -> dict[str, Any]:
    """The manifest of the environment's only EC2NodeClass.

    Args:
        nodes: of the environment.
        placement: where they are launched.
        role: name of their IAM role.
        tags: of the instances and their volumes, in addition to Karpenter's own.
        performance: of the volume with the pods' files, by the plans; None: what the environment gives, otherwise gp3's baseline.
        isolated: whether Karpenter can't reach IAM: then it uses an existing instance profile of the role's name.
        name: of the EC2NodeClass.

    Returns:
        A mapping in the form of the Kubernetes API.
    """
    spec: dict[str, Any] = {
        ("instanceProfile" if isolated else "role"): role,
        "amiSelectorTerms": [{"alias": f"{nodes.ami_family.lower()}@{nodes.ami_version}"}],
        "subnetSelectorTerms": [{"id": id} for id in placement.subnet_ids],
        "securityGroupSelectorTerms": [{"id": id} for id in placement.security_group_ids],
        "associatePublicIPAddress": False,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": METADATA_HOPS,
            "httpTokens": "required",
        },
        "blockDeviceMappings": _volumes(nodes, performance or _given(nodes)),
        "tags": dict(tags),
    }
    if nodes.max_pods is not None:
        spec["kubelet"] = {"maxPods": nodes.max_pods}
    return {"apiVersion": API_VERSION, "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def _given(nodes: Nodes) -> RootVolumePlan:
    given = nodes.root_volume_performance
    return RootVolumePlan() if given is None else RootVolumePlan(iops=given.iops, mibps=given.throughput)


def _volumes(nodes: Nodes, performance: RootVolumePlan) -> list[dict[str, Any]]:
    gib = nodes.root_volume // _MIB_OF_GIB
    if nodes.ami_family == "Bottlerocket":
        return [_volume(_ROOT, _BOTTLEROCKET_SYSTEM_GIB, RootVolumePlan()), _volume(_BOTTLEROCKET_DATA, gib, performance)]
    return [_volume(_ROOT, gib, performance)]


def _volume(device: str, gib: int, performance: RootVolumePlan) -> dict[str, Any]:
    ebs: dict[str, Any] = {"volumeType": "gp3", "volumeSize": f"{gib}Gi", "encrypted": True, "deleteOnTermination": True}
    # The baseline is left out: written or not, it is the same volume, but another EC2NodeClass, whose nodes are replaced.
    if performance.iops > GP3_FREE_IOPS:
        ebs["iops"] = performance.iops
    if performance.mibps > GP3_FREE_MIBPS:
        ebs["throughput"] = performance.mibps
    return {"deviceName": device, "ebs": ebs}
