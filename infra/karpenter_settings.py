"""The values of Karpenter's own chart: what the sizing takes Karpenter to do, said to Karpenter.

Source: the chart of Karpenter 1.14.1 and its settings page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.infra.parts.eks import Eks
from penstock.infra.parts.nodes import Nodes
from penstock.sizing.placement.scenario import BATCH_IDLE_S, BATCH_MAX_S

# One leads, the other takes over.
REPLICAS = 2
# Source: Karpenter's getting-started guide, for up to some hundred nodes. Without a limit of its memory Go's collector knows no bound.
CONTROLLER_RESOURCES = {"cpu": "1", "memory": "1Gi"}
# Source: Karpenter 1.14.1, the defaults of its gates, each of them written: the placement is that with these, and a chart that leaves one
# empty has a controller that does not start.
FEATURE_GATES = {
    "nodeRepair": False,
    "nodeOverlay": False,
    "reservedCapacity": True,
    "spotToSpotConsolidation": False,
    "staticCapacity": False,
    "capacityBuffer": False,
}


class Place(NamedTuple):
    """Where a controller runs, and for whom.

    Args:
        region: of the cluster.
        cluster_name: of the EKS cluster.
        interruption_queue: name of the queue that it reads.
        node_selector: labels of the nodes that its pods run on.
        isolated: whether it reaches nothing of AWS but what has an endpoint in the VPC.
    """

    region: str
    cluster_name: str
    interruption_queue: str
    node_selector: Mapping[str, str]
    isolated: bool = False


def controller_values(nodes: Nodes, eks: Eks, place: Place) -> dict[str, Any]:
    """The values of the chart ``karpenter``.

    The chart's own affinity spreads the replicas over nodes, none of them Karpenter's, and it tolerates the taint of the system nodes.

    Args:
        nodes: of the environment.
        eks: its cluster.
        place: where the controller runs.
    """
    return {
        "replicas": min(REPLICAS, eks.system_nodes.min),
        "nodeSelector": dict(place.node_selector),
        "controller": {
            "resources": {"requests": CONTROLLER_RESOURCES, "limits": CONTROLLER_RESOURCES},
            # It would ask the metadata service of its node, which is one hop too far from a pod.
            "env": [{"name": "AWS_REGION", "value": place.region}],
        },
        "settings": {
            "clusterName": place.cluster_name,
            "interruptionQueue": place.interruption_queue,
            "isolatedVPC": place.isolated,
            "batchIdleDuration": f"{BATCH_IDLE_S:g}s",
            "batchMaxDuration": f"{BATCH_MAX_S:g}s",
            "vmMemoryOverheadPercent": nodes.vm_memory_overhead_percent,
            # Text: the chart quotes it.
            "reservedENIs": str(nodes.reserved_enis),
            "preferencePolicy": "Respect",
            "minValuesPolicy": "Strict",
            "enableZonalShift": False,
            "featureGates": FEATURE_GATES,
        },
    }
