"""Where Penstock's own pods run: Prometheus, the Job that applies topics, and Karpenter unless the cluster has one."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.parts.nodes import PodPlace

# Of the cluster stack's system nodes. The label and the taint keep other pods off: a node full of executors would have no room for
# Karpenter, which provisions nodes. CoreDNS, the EBS driver and Karpenter's chart tolerate this taint by default.
ROLE_LABEL, SYSTEM_ROLE = "penstock.dev/role", "system"
TAINT = "CriticalAddonsOnly"


def system_pods(environment: Environment) -> PodPlace:
    """Their placement: on the system nodes of the cluster stack; in an existing cluster, which has none, where the environment says.

    Args:
        environment: with a cluster.
    """
    existing = environment.existing_cluster
    if existing is not None:
        return existing.system_pods
    return PodPlace.model_validate({"nodeSelector": {ROLE_LABEL: SYSTEM_ROLE}, "tolerations": [{"key": TAINT, "operator": "Exists"}]})
