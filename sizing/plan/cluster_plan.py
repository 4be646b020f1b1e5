"""What a plan becomes in a cluster: its nodes, its cost, and what the loss of nodes does to it."""

from __future__ import annotations

from typing import NamedTuple

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.plan.cluster_feasibility import broker_quota_violations, cluster_violations
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nearest_fit import Wanted
from penstock.sizing.plan.nodes import allocation, plan_nodes
from penstock.sizing.plan.resilience import planned_spot
from penstock.sizing.plan.usage import assumptions_of, usage_of
from penstock.sizing.planned import Plan, SpotPlan
from penstock.sizing.planned_nodes import NodesPlan, PlacedPods
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.targets import DecidedTargets, Targets
from penstock.sizing.violation import Violation

# What a pod of the plan is about -> the field of the targets that says where it stands.
_FIELDS = {"executor": "executor.memory_mib", "driver": "driver.memory_mib"}


class ClusterPlan(NamedTuple):
    """What a cluster adds to a plan; nothing where there is no cluster."""

    nodes: NodesPlan | None = None
    cost: Bill | None = None
    spot: SpotPlan | None = None
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()


def plan_in_cluster(targets: DecidedTargets, settings: SparkSettings, draft: Plan, cluster: Cluster) -> ClusterPlan:
    """The nodes of a plan and what follows from them.

    Args:
        targets: of the job.
        settings: of the job, for how executors come and go.
        draft: the plan without nodes.
        cluster: the environment.
    """
    groups = pod_groups(draft.pods, draft.spark_conf, cluster)
    allocations = {EXECUTOR: allocation(settings)}
    nodes = plan_nodes(groups, cluster, allocations)
    found = cluster_violations(Wanted(groups, cluster, allocations), nodes, {EXECUTOR: draft.pods.executor.slots or 1})
    kafka = [draft.kafka.load] if draft.kafka.load else []
    return ClusterPlan(
        nodes=nodes,
        cost=bill_of(
            nodes.staged,
            [draft.state.checkpoint],
            kafka,
            cluster,
            sum(draft.kafka.topics.values()),
            bounded=targets.trigger_s is None,
        ),
        spot=planned_spot(targets, draft.pods, settings, nodes, cluster, draft.state),
        violations=(*(_located(targets, group, fault) for group, fault in found), *broker_quota_violations(draft.kafka.load, cluster)),
        notes=_notes(nodes, cluster),
    )


def bill_of(
    nodes: PlacedPods,
    checkpoints: list[CheckpointTraffic],
    kafka: list[LoadKafka],
    cluster: Cluster,
    topics: int,
    *,
    bounded: bool = False,
) -> Bill | None:
    """The bill of jobs that have the environment for themselves; None where the region's prices are not known.

    Args:
        nodes: that run all the time.
        checkpoints: of each job.
        kafka: of each job with a load.
        cluster: the environment.
        topics: partitions of all topics, without replicas.
        bounded: whether a job ends by itself.
    """
    if cluster.prices is None:
        return None
    made = bill(usage_of(nodes, checkpoints, kafka, cluster, topics), cluster.prices, cluster.catalog, cluster.spot_ratio)
    return made.model_copy(update={"assumptions": (*made.assumptions, *assumptions_of(nodes, kafka, cluster, bounded=bounded))})


def _located(targets: Targets, group: str, fault: Violation) -> Violation:
    """The fault at the field of the spec that the pods come from; what is of the environment names its own path."""
    field = _FIELDS.get(group)
    if field is None:
        return fault
    origin = targets.origins.get(field)
    if origin is None or not origin.given:
        origin = targets.origins.get(field.replace("memory_mib", "heap_mib"), origin)
    return fault.moved(None if origin is None else origin.at, path=group)


def _notes(nodes: NodesPlan, cluster: Cluster) -> tuple[str, ...]:
    found: list[str] = []
    if nodes.staged.nodes != nodes.one_batch.nodes:
        found.append(
            f"the first start needs {nodes.staged.nodes} nodes, as Spark requests executors in batches; "
            f"all pods at once need {nodes.one_batch.nodes}"
        )
    if cluster.prices is None:
        found.append(f"no prices for {cluster.region}, so no cost is computed")
    return tuple(found)
