"""All stacks of an environment, each with the outputs of other stacks that it uses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from constructs import Construct

from penstock.infra.environment import Environment
from penstock.infra.errors import UnknownStack
from penstock.infra.plans import EnvironmentPlans

if TYPE_CHECKING:
    from penstock.infra.stacks.checkpoints import CheckpointsStack
    from penstock.infra.stacks.cluster import ClusterStack
    from penstock.infra.stacks.jobs import JobsStack
    from penstock.infra.stacks.jobs_charts import JobsChartsStack
    from penstock.infra.stacks.kafka import KafkaStack
    from penstock.infra.stacks.karpenter import KarpenterStack
    from penstock.infra.stacks.karpenter_charts import KarpenterChartsStack
    from penstock.infra.stacks.network import NetworkStack
    from penstock.infra.stacks.observability import ObservabilityStack
    from penstock.infra.stacks.observability_charts import ObservabilityChartsStack
    from penstock.infra.stacks.registry import RegistryStack

# In an order in which they can be applied one after another.
AWS = ("network", "checkpoints", "kafka", "cluster", "karpenter", "registry", "jobs", "observability")
CHARTS = ("karpenter-charts", "jobs-charts", "observability-charts")
# In a cluster whose NodePools are there already, there is nothing of Karpenter to release.
_NODE_POOLS = "karpenter-charts"
# The stacks that do not need a cluster.
_WITHOUT_CLUSTER = ("checkpoints",)


def stack_names(environment: Environment) -> tuple[str, ...]:
    """The stacks of an environment, in an order in which they can be applied.

    An emulated cluster has no Kubernetes API, so its environment has no chart stacks.

    Args:
        environment: the environment.
    """
    if environment.spec.eks is None:
        return _WITHOUT_CLUSTER
    if environment.spec.endpoints:
        return AWS
    return AWS + tuple(name for name in CHARTS if name != _NODE_POOLS or creates_node_pools(environment))


def creates_node_pools(environment: Environment) -> bool:
    """Whether the NodePools are the stacks' own.

    Args:
        environment: with a cluster.
    """
    existing = environment.existing_cluster
    return existing is None or existing.node_pools == "create"


def add_stacks(app: Construct, environment: Environment, plans: EnvironmentPlans, only: Sequence[str] = ()) -> None:
    """Adds the stacks to an app. References between stacks determine the order in which they are applied.

    Args:
        app: the cdktf app.
        environment: the environment of the stacks.
        plans: of its jobs.
        only: names of the requested stacks, whose dependencies are included; empty: all stacks.

    Raises:
        UnknownStack: INF-007.
    """
    names = stack_names(environment)
    for name in only:
        if name not in names:
            raise UnknownStack(path="stack", given=name, need=f"one of {', '.join(names)}", fix="specify one of these")
    stacks = Stacks(app, environment, plans)
    for name in only or names:
        getattr(stacks, name.replace("-", "_"))


class Stacks:
    """The stacks by name; each is created, with its dependencies, on first use.

    Args:
        app: the cdktf app.
        environment: the environment of the stacks.
        plans: of its jobs.
    """

    def __init__(self, app: Construct, environment: Environment, plans: EnvironmentPlans) -> None:
        self._app = app
        self._environment = environment
        self._plans = plans

    # Modules are imported where they are used: each loads bindings, and a local run needs only one stack.

    @cached_property
    def checkpoints(self) -> CheckpointsStack:
        """Buckets for checkpoints, savepoints and output."""
        from penstock.infra.stacks.checkpoints import CheckpointsStack

        return CheckpointsStack(self._app, self._environment)

    @cached_property
    def registry(self) -> RegistryStack:
        """The registry of the jobs' image."""
        from penstock.infra.stacks.registry import RegistryStack

        return RegistryStack(self._app, self._environment)

    @cached_property
    def network(self) -> NetworkStack:
        """The VPC."""
        from penstock.infra.stacks.network import NetworkStack

        return NetworkStack(self._app, self._environment)

    @cached_property
    def kafka(self) -> KafkaStack:
        """The brokers."""
        from penstock.infra.stacks.kafka import KafkaStack

        return KafkaStack(self._app, self._environment, self.network.outputs, self._plans)

    @cached_property
    def cluster(self) -> ClusterStack:
        """EKS."""
        from penstock.infra.stacks.cluster import ClusterStack

        return ClusterStack(self._app, self._environment, self.network.outputs)

    @cached_property
    def karpenter(self) -> KarpenterStack:
        """The AWS resources that Karpenter requires."""
        from penstock.infra.stacks.karpenter import KarpenterStack

        return KarpenterStack(self._app, self._environment, self.cluster.outputs)

    @cached_property
    def jobs(self) -> JobsStack:
        """The permissions of the jobs on AWS."""
        from penstock.infra.stacks.jobs import JobsStack

        return JobsStack(self._app, self._environment, self._plans, self.checkpoints.outputs, self.kafka.outputs, self.cluster.outputs)

    @cached_property
    def observability(self) -> ObservabilityStack:
        """Logs, alarms and budgets."""
        from penstock.infra.stacks.observability import ObservabilityStack

        return ObservabilityStack(
            self._app, self._environment, self._plans, self.network.outputs, self.cluster.outputs, self.karpenter.outputs
        )

    @cached_property
    def karpenter_charts(self) -> KarpenterChartsStack:
        """Karpenter, its NodePools and its EC2NodeClass."""
        from penstock.infra.stacks.karpenter_charts import KarpenterChartsStack

        return KarpenterChartsStack(
            self._app, self._environment, self._plans, self.network.outputs, self.cluster.outputs, self.karpenter.outputs
        )

    @cached_property
    def jobs_charts(self) -> JobsChartsStack:
        """The jobs. Their pods need nodes, so the NodePools are applied first."""
        from penstock.infra.stacks.jobs_charts import JobsChartsStack

        stack = JobsChartsStack(
            self._app,
            self._environment,
            self._plans,
            self.cluster.outputs,
            self.checkpoints.outputs,
            self.kafka.outputs,
            self.registry.outputs,
            self.jobs.outputs,
        )
        if creates_node_pools(self._environment):
            stack.add_dependency(self.karpenter_charts)
        return stack

    @cached_property
    def observability_charts(self) -> ObservabilityChartsStack:
        """Collection of logs and metrics."""
        from penstock.infra.stacks.observability_charts import ObservabilityChartsStack

        stack = ObservabilityChartsStack(self._app, self._environment, self._plans, self.cluster.outputs, self.observability.outputs)
        if creates_node_pools(self._environment):
            stack.add_dependency(self.karpenter_charts)
        return stack
