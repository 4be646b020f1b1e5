"""The part of a plan that depends on the cluster: nodes, cost, and the effect of node loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.sizing.catalog.catalog import SHIPPED_REGION, how_to_get
from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill
from penstock.sizing.errors import RootVolumeTooSlow, SpreadNotMet, StorageFitsNoNode
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.plan.cluster_feasibility import broker_quota_violations, cluster_violations
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nearest_fit import Wanted
from penstock.sizing.plan.nodes import allocation, plan_nodes
from penstock.sizing.plan.resilience import planned_spot
from penstock.sizing.plan.root_volume import Throughputs, planned_root_volume, root_volume_notes, root_volume_violations
from penstock.sizing.plan.usage import assumptions_of, usage_of
from penstock.sizing.planned import Plan, SpotPlan
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.state.checkpoint import CheckpointTraffic
from penstock.sizing.targets import DecidedTargets, Targets
from penstock.sizing.violation import Violation

# Subject of a pod of the plan -> the field of the targets with its place.
_FIELDS = {"executor": "executor.memory_mib", "driver": "driver.memory_mib"}


class ClusterPlan(NamedTuple):
    """The part of a plan that depends on the cluster; empty without a cluster."""

    nodes: NodesPlan | None = None
    cost: Bill | None = None
    spot: SpotPlan | None = None
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()


def plan_in_cluster(targets: DecidedTargets, settings: SparkSettings, draft: Plan, cluster: Cluster) -> ClusterPlan:
    """Computes the nodes of a plan and what depends on them.

    Args:
        targets: targets of the job.
        settings: settings of the job, for executor allocation.
        draft: the plan without nodes.
        cluster: the environment.
    """
    if cluster.catalog.is_unknown:
        notes = tuple(_without_catalog(cluster, brokers=draft.kafka.load is not None))
        return ClusterPlan(violations=tuple(broker_quota_violations(draft.kafka.load, cluster)), notes=notes)
    groups = pod_groups(draft.pods, draft.spark_conf, cluster)
    allocations = {EXECUTOR: allocation(settings)}
    nodes = plan_nodes(groups, cluster, allocations)
    disks = {EXECUTOR: draft.executor_disk}
    nodes = nodes.model_copy(update={"root_volume": planned_root_volume(nodes, disks, cluster)})
    slots = {} if targets.parallelism.source == "load" else {EXECUTOR: draft.pods.executor.slots or 1}
    violations = cluster_violations(Wanted(groups, cluster, allocations), nodes, slots) + root_volume_violations(nodes, disks, cluster)
    kafka = [draft.kafka.load] if draft.kafka.load else []
    return ClusterPlan(
        nodes=nodes,
        cost=bill_of(
            nodes,
            [draft.state.checkpoint],
            kafka,
            cluster,
            sum(draft.kafka.topics.values()),
            bounded=targets.trigger_s is None,
        ),
        spot=planned_spot(targets, draft.pods, settings, nodes, cluster, draft.state),
        violations=(*(_located(targets, group, fault) for group, fault in violations), *broker_quota_violations(draft.kafka.load, cluster)),
        notes=_notes(nodes, disks, cluster),
    )


def bill_of(
    nodes: NodesPlan,
    checkpoints: list[CheckpointTraffic],
    kafka: list[LoadKafka],
    cluster: Cluster,
    topics: int,
    *,
    bounded: bool = False,
) -> Bill | None:
    """The bill of jobs that have the environment to themselves; None if the region's prices are unknown.

    Args:
        nodes: those of a first start run all the time.
        checkpoints: checkpoint traffic of each job.
        kafka: Kafka of each job with a load.
        cluster: the environment.
        topics: partitions of all topics, without replicas.
        bounded: whether any job is a bounded run.
    """
    if cluster.prices is None:
        return None
    made = bill(usage_of(nodes, checkpoints, kafka, cluster, topics), cluster.prices, cluster.catalog, cluster.spot_ratio)
    return made.model_copy(update={"assumptions": (*made.assumptions, *assumptions_of(nodes.staged, kafka, cluster, bounded=bounded))})


def _located(targets: Targets, group: str, fault: Violation) -> Violation:
    """The fault at the field of the spec that defines the pods; faults of the environment keep their own path."""
    field = _FIELDS.get(group)
    if field is None:
        return fault
    if fault.code == RootVolumeTooSlow.code:
        return fault.moved(targets.origins["load"].at if "load" in targets.origins else None, path=group)
    if fault.code == StorageFitsNoNode.code:
        # What the spec says of it: the size itself, or the load that it follows from.
        field = next((one for one in (f"{group}.storage_mib", "load") if _is_given(targets, one)), field)
        return fault.moved(targets.origins[field].at if field in targets.origins else None, path=group)
    if fault.code == SpreadNotMet.code:
        return targets.located(fault, "executor.spread").moved(given=fault.given)
    origin = targets.origins.get(field)
    if origin is None or not origin.given:
        origin = targets.origins.get(field.replace("memory_mib", "heap_mib"), origin)
    return fault.moved(None if origin is None else origin.at, path=group)


def _is_given(targets: Targets, field: str) -> bool:
    return field in targets.origins and bool(targets.origins[field].given)


def _without_catalog(cluster: Cluster, *, brokers: bool) -> Iterator[str]:
    """What is missing from the plan, and how to get it."""
    region = cluster.region
    yield (
        f"no instance types of {region} are shipped: nodes, cost and losses of spot nodes are not planned, and nothing says whether pods "
        f"fit a node; run {how_to_get(region)} with AWS credentials, then add --catalog catalog.{region}.json"
    )
    if brokers and cluster.kafka is not None and cluster.kafka.kind in ("standard", "express") and cluster.kafka.broker_type is None:
        yield f"the broker type is the cheapest in {SHIPPED_REGION}; prices and types in {region} may differ"


def _notes(nodes: NodesPlan, disks: Throughputs, cluster: Cluster) -> tuple[str, ...]:
    notes: list[str] = []
    if nodes.staged.nodes != nodes.one_batch.nodes:
        notes.append(
            f"the first start needs {nodes.staged.nodes} nodes, as Spark requests executors in batches; "
            f"all pods at once need {nodes.one_batch.nodes}"
        )
    notes += root_volume_notes(nodes, disks, cluster)
    if cluster.prices is None:
        notes.append(f"no prices for {cluster.region}, so no cost is computed")
    return tuple(notes)
