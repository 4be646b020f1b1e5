"""Karpenter's EC2NodeClass: settings common to all nodes of an environment.

Source: the CRD karpenter.k8s.aws_ec2nodeclasses of Karpenter 1.14.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.infra.manifests.node_pool import NODE_CLASS
from penstock.infra.parts.nodes import Nodes

API_VERSION = "karpenter.k8s.aws/v1"
# The tag by which Karpenter discovers the subnets and the security group of a cluster; its value is the cluster's name.
DISCOVERY_TAG = "karpenter.sh/discovery"
# A pod is one hop farther from the metadata service than its node: with a hop limit of one, no pod can get the node's role.
METADATA_HOPS = 1
_MIB_OF_GIB = 1024
# Source: karpenter-provider-aws v1.14.1, the default block devices of the families. Bottlerocket has a separate volume for its system.
_ROOT, _BOTTLEROCKET_DATA = "/dev/xvda", "/dev/xvdb"
_BOTTLEROCKET_SYSTEM_GIB = 4


def node_class(nodes: Nodes, *, cluster_name: str, role: str, tags: Mapping[str, str], isolated: bool = False) -> dict[str, Any]:
    """The manifest of the environment's only EC2NodeClass.

    Args:
        nodes: of the environment.
        cluster_name: cluster that the nodes join.
        role: name of their IAM role.
        tags: of the instances and their volumes, in addition to Karpenter's own.
        isolated: whether Karpenter can't reach IAM: then it uses an existing instance profile of the role's name.

    Returns:
        A mapping in the form of the Kubernetes API.
    """
    discovered = [{"tags": {DISCOVERY_TAG: cluster_name}}]
    spec: dict[str, Any] = {
        ("instanceProfile" if isolated else "role"): role,
        "amiSelectorTerms": [{"alias": f"{nodes.ami_family.lower()}@{nodes.ami_version}"}],
        "subnetSelectorTerms": discovered,
        "securityGroupSelectorTerms": discovered,
        "associatePublicIPAddress": False,
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": METADATA_HOPS,
            "httpTokens": "required",
        },
        "blockDeviceMappings": _volumes(nodes),
        "tags": dict(tags),
    }
    if nodes.max_pods is not None:
        spec["kubelet"] = {"maxPods": nodes.max_pods}
    return {"apiVersion": API_VERSION, "kind": "EC2NodeClass", "metadata": {"name": NODE_CLASS}, "spec": spec}


def _volumes(nodes: Nodes) -> list[dict[str, Any]]:
    gib = nodes.root_volume // _MIB_OF_GIB
    if nodes.ami_family == "Bottlerocket":
        return [_volume(_ROOT, _BOTTLEROCKET_SYSTEM_GIB), _volume(_BOTTLEROCKET_DATA, gib)]
    return [_volume(_ROOT, gib)]


def _volume(device: str, gib: int) -> dict[str, Any]:
    ebs = {"volumeType": "gp3", "volumeSize": f"{gib}Gi", "encrypted": True, "deleteOnTermination": True}
    return {"deviceName": device, "ebs": ebs}
