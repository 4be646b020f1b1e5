"""The values of Karpenter's chart, matching what sizing assumes about Karpenter.

Source: the chart of Karpenter 1.14.1 and its settings page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.infra.parts.eks import Eks
from penstock.infra.parts.nodes import Nodes
from penstock.sizing.placement.scenario import BATCH_IDLE_S, BATCH_MAX_S

# Release, namespace and container of the controller. Source: the chart of Karpenter 1.14.1, whose pods have the release's name in their
# labels `app.kubernetes.io/name` and `app.kubernetes.io/instance`.
RELEASE, NAMESPACE, CONTAINER = "karpenter", "kube-system", "controller"
SELECTOR = {"app.kubernetes.io/name": RELEASE, "app.kubernetes.io/instance": RELEASE}
# The chart's own, set explicitly: Prometheus asks for the metrics there.
METRICS_PORT = 8080
# A leader and a standby.
REPLICAS = 2
# Source: Karpenter's getting-started guide, for up to some hundred nodes. Without a memory limit, Go's garbage collector has no bound.
CONTROLLER_RESOURCES = {"cpu": "1", "memory": "1Gi"}
# Source: Karpenter 1.14.1, the defaults of its feature gates, all set explicitly: sizing simulates placement with these values, and a chart
# with an empty gate yields a controller that does not start.
FEATURE_GATES = {
    "nodeRepair": False,
    "nodeOverlay": False,
    "reservedCapacity": True,
    "spotToSpotConsolidation": False,
    "staticCapacity": False,
    "capacityBuffer": False,
}


class Image(NamedTuple):
    """The controller's image.

    Args:
        repository: at a mirror, without tag and digest; None: the chart's own.
        digest: None: the chart's own.
    """

    repository: str | None = None
    digest: str | None = None


class Place(NamedTuple):
    """Where a controller runs, and its cluster.

    Args:
        region: of the cluster.
        cluster_name: of the EKS cluster.
        interruption_queue: name of the queue that it reads.
        node_selector: labels of the nodes that its pods run on.
        isolated: whether it only reaches AWS services with an endpoint in the VPC.
        tolerations: of its pods, in the form of the Kubernetes API; empty: the chart's own.
        image: what differs from the chart's.
    """

    region: str
    cluster_name: str
    interruption_queue: str
    node_selector: Mapping[str, str]
    isolated: bool = False
    tolerations: Sequence[Mapping[str, Any]] = ()
    image: Image = Image()


def controller_values(nodes: Nodes, eks: Eks, place: Place) -> dict[str, Any]:
    """The values of the chart ``karpenter``.

    The chart's own affinity spreads the replicas over nodes not managed by Karpenter, and it tolerates the taint of the system nodes.

    Args:
        nodes: of the environment.
        eks: its cluster.
        place: where the controller runs.
    """
    image = {key: value for key, value in place.image._asdict().items() if value is not None}
    return {
        "replicas": min(REPLICAS, eks.system_nodes.min),
        "nodeSelector": dict(place.node_selector),
        **({"tolerations": [dict(one) for one in place.tolerations]} if place.tolerations else {}),
        "controller": {
            **({"image": image} if image else {}),
            "metrics": {"port": METRICS_PORT},
            "resources": {"requests": CONTROLLER_RESOURCES, "limits": CONTROLLER_RESOURCES},
            # Otherwise it queries its node's metadata service, which the hop limit denies to pods.
            "env": [{"name": "AWS_REGION", "value": place.region}],
        },
        "settings": {
            "clusterName": place.cluster_name,
            "interruptionQueue": place.interruption_queue,
            "isolatedVPC": place.isolated,
            "batchIdleDuration": f"{BATCH_IDLE_S:g}s",
            "batchMaxDuration": f"{BATCH_MAX_S:g}s",
            "vmMemoryOverheadPercent": nodes.vm_memory_overhead_percent,
            # A string, because the chart quotes it.
            "reservedENIs": str(nodes.reserved_enis),
            "preferencePolicy": "Respect",
            "minValuesPolicy": "Strict",
            "enableZonalShift": False,
            "featureGates": FEATURE_GATES,
        },
    }
