"""The production environment in a VPC and a cluster that a team has already."""

from __future__ import annotations

from typing import Any

PRIVATE = [f"subnet-0123456789abcde{number}" for number in range(3)]
GROUP = "sg-0123456789abcdef0"
NODE_ROLE = "KarpenterNodeRole-platform"
THEIRS = {"name": "platform", "karpenter": "existing", "nodeRole": NODE_ROLE, "securityGroupIds": [GROUP]}
OURS = {"name": "platform", "karpenter": "create", "systemPods": {"nodeSelector": {"pool": "system"}, "tolerations": [{"key": "system"}]}}
THEIR_POOLS = {"name": "platform", "karpenter": "existing", "nodePools": "existing"}


def in_existing(spec: dict[str, Any], cluster: dict[str, Any]) -> None:
    """Changes the spec of an environment."""
    zones = spec["network"]["zones"]
    existing = {"vpcId": "vpc-0123456789abcdef0", "cidr": "10.7.0.0/16", "privateSubnetIds": PRIVATE[: len(zones)]}
    spec["network"] = {"zones": zones, "natGateways": 1, "existing": existing}
    spec["eks"] = {"version": spec["eks"]["version"], "existing": dict(cluster)}
