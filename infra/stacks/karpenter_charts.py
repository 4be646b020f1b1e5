"""The karpenter-charts stack: Karpenter's controller and its NodePools."""

from __future__ import annotations

import json
from typing import Any, Protocol

from constructs import Construct

from penstock.infra.constructs.charts_stack import ChartsStack, Cluster
from penstock.infra.constructs.local_chart import LocalChart
from penstock.infra.driver_pools import leave_drivers_alone
from penstock.infra.environment import Environment
from penstock.infra.helm_bindings import helm
from penstock.infra.image_lock import digest_of
from penstock.infra.karpenter_charts import IMAGE, Chart, charts
from penstock.infra.karpenter_settings import NAMESPACE, Image, Place, controller_values
from penstock.infra.manifests.node_class import Placement, node_class
from penstock.infra.manifests.node_pool import node_pool
from penstock.infra.manifests.pod import tolerations
from penstock.infra.parts.eks import Eks
from penstock.infra.parts.mirrors import mirrored
from penstock.infra.parts.nodes import Nodes
from penstock.infra.plans import EnvironmentPlans
from penstock.infra.pool_limits import pool_limits
from penstock.infra.stacks.karpenter import isolated
from penstock.infra.system_pods import system_pods

STACK = "karpenter-charts"
# The deletion of a pool waits until its nodes are drained and terminated.
POOLS_TIMEOUT_S = 1800


class Network(Protocol):
    """The outputs of the network stack that this stack uses."""

    @property
    def private_subnet_ids(self) -> tuple[str, ...]:
        """One per zone."""


class NodesCluster(Cluster, Protocol):
    """The outputs of the cluster stack that this stack uses."""

    @property
    def node_security_group_ids(self) -> tuple[str, ...]:
        """Security groups of its nodes."""


class Karpenter(Protocol):
    """The outputs of the karpenter stack that this stack uses."""

    @property
    def interruption_queue(self) -> str | None:
        """Name of the queue that the controller reads; None: the cluster has a Karpenter."""

    @property
    def node_role_name(self) -> str | None:
        """The role of the instances that it launches."""


class KarpenterChartsStack(ChartsStack):
    """Three releases, one after another: Karpenter's CRDs, its controller, and the NodePools with their EC2NodeClass.

    The CRDs have a separate chart, because Helm never updates CRDs that are part of a chart with templates. In a cluster that has a
    Karpenter, the NodePools alone.

    Args:
        scope: the app.
        environment: the environment of the stack, with a cluster.
        plans: of its jobs, from which missing limits of pools are derived.
        network: of the nodes.
        cluster: target of the releases.
        karpenter: its AWS resources.

    Raises:
        PenstockError: INF-030 and INF-031; several are raised as `Faults`.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        plans: EnvironmentPlans,
        network: Network,
        cluster: NodesCluster,
        karpenter: Karpenter,
    ) -> None:
        super().__init__(scope, STACK, environment, cluster)
        spec = environment.spec
        assert spec.eks is not None and spec.nodes is not None and karpenter.node_role_name is not None
        controller = self._controller(spec.nodes, spec.eks, karpenter.interruption_queue) if karpenter.interruption_queue else None
        machines = node_class(
            spec.nodes,
            name=environment.node_class,
            placement=Placement(network.private_subnet_ids, cluster.node_security_group_ids),
            role=karpenter.node_role_name,
            tags={"penstock:environment": environment.name, **spec.tags},
            performance=None if plans.together is None else plans.together.nodes.root_volume,
            isolated=isolated(environment),
        )
        LocalChart(
            self,
            "node-pools",
            name=environment.release("node-pools"),
            namespace=NAMESPACE,
            manifests=[machines, *_node_pools(environment, spec.nodes, plans)],
            timeout_s=POOLS_TIMEOUT_S,
            depends_on=[controller] if controller is not None else [],
        )

    def _controller(self, nodes: Nodes, eks: Eks, interruption_queue: str) -> Any:
        """Karpenter's two releases."""
        environment, system = self.environment, system_pods(self.environment)
        place = Place(
            region=environment.spec.region,
            cluster_name=environment.cluster_name,
            interruption_queue=interruption_queue,
            node_selector={"kubernetes.io/os": "linux", **system.node_selector},
            isolated=isolated(environment),
            # Those of the chart suffice for the system nodes of the cluster stack.
            tolerations=tolerations(system.tolerations) if environment.existing_cluster is not None else (),
            image=_image(environment),
        )
        values = controller_values(nodes, eks, place)
        crds_chart, controller_chart = charts(environment)
        crds = self._release(crds_chart)
        return self._release(controller_chart, values=[json.dumps(values)], skip_crds=True, depends_on=[crds])

    def _release(self, chart: Chart, **how: Any) -> Any:
        release = helm.release.Release
        return release(
            self,
            chart.name,
            name=chart.name,
            namespace=NAMESPACE,
            repository=f"oci://{chart.repository}",
            chart=chart.name,
            version=chart.version,
            create_namespace=False,
            atomic=True,
            wait=True,
            max_history=10,
            **how,
        )


def _image(environment: Environment) -> Image:
    """What differs from the controller's image in the chart: its repository at a mirror, and its digest if it is locked."""
    spec = environment.spec
    assert spec.eks is not None
    image = mirrored(IMAGE, spec.mirrors)
    return Image(None if image == IMAGE else image, digest_of(f"{IMAGE}:{spec.eks.karpenter_version}"))


def _node_pools(environment: Environment, nodes: Nodes, plans: EnvironmentPlans) -> list[dict[str, Any]]:
    """The pools of the environment; missing limits are derived from its jobs."""
    limits = {}
    if plans.cluster is not None:
        limits = pool_limits(plans.workloads, plans.cluster, nodes.limit_headroom)
    if plans.together is not None:
        leave_drivers_alone(environment, plans.together.nodes)
    return [
        node_pool(pool, limits[pool.name].quantities if pool.name in limits else None, node_class=environment.node_class)
        for pool in nodes.pools
    ]
