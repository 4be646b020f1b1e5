"""Where Penstock's own pods run: Prometheus, and Karpenter unless the cluster has one."""

from __future__ import annotations

from penstock.infra.constructs.system_nodes import ROLE_LABEL, SYSTEM_ROLE, TAINT
from penstock.infra.environment import Environment
from penstock.infra.parts.nodes import PodPlace


def system_pods(environment: Environment) -> PodPlace:
    """Their placement: on the system nodes of the cluster stack; in an existing cluster, which has none, where the environment says.

    Args:
        environment: with a cluster.
    """
    existing = environment.existing_cluster
    if existing is not None:
        return existing.system_pods
    return PodPlace.model_validate({"nodeSelector": {ROLE_LABEL: SYSTEM_ROLE}, "tolerations": [{"key": TAINT, "operator": "Exists"}]})
