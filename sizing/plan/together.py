"""All jobs of an environment together: shared nodes, one Kafka, one bill."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.billed import Bill
from penstock.sizing.kafka.partitions import most_partitions
from penstock.sizing.load.load_plan import LoadKafka
from penstock.sizing.plan.cluster_feasibility import broker_quota_violations, cluster_violations
from penstock.sizing.plan.cluster_plan import bill_of
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nearest_fit import Wanted
from penstock.sizing.plan.nodes import allocation_of, plan_nodes
from penstock.sizing.plan.root_volume import planned_root_volume, root_volume_violations
from penstock.sizing.plan.session.planned import SessionPlan
from penstock.sizing.plan.shared_kafka import shared_kafka
from penstock.sizing.plan.workload import Workload, workloads
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.violation import Violation


class Together(BaseModel):
    """The combined resources of jobs that share an environment.

    Args:
        executors: executors of all jobs.
        pods: pods of all jobs, drivers included.
        partitions: partitions of all topics that any job reads or writes, counting a shared topic once.
        nodes: nodes that run all pods.
        cost: cost of the environment with these jobs; None: the region's prices are unknown.
        kafka: combined demand of the jobs with a load on one cluster; None: no job has one.
        feasible: whether the environment carries all jobs.
        violations: the violations otherwise.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    executors: int
    pods: int
    partitions: int
    nodes: NodesPlan
    cost: Bill | None
    kafka: LoadKafka | None
    feasible: bool
    violations: tuple[Violation, ...] = ()


def plan_together(jobs: Mapping[str, Plan], cluster: Cluster, sessions: Mapping[str, SessionPlan] | None = None) -> Together:
    """Plans jobs together.

    Args:
        jobs: name -> plan; pods arrive in this order, as far as Karpenter respects it.
        cluster: the shared cluster.
        sessions: name -> plan of those that several of the jobs run in, after the others; None: there are none.
    """
    running = workloads(jobs, sessions or {})
    nodes, faults = _placed(running, cluster)
    partitions = sum(most_partitions(plan.kafka.topics for plan in jobs.values()).values())
    kafka, out_of_reach = shared_kafka([plan.kafka.load for plan in jobs.values() if plan.kafka.load], partitions, cluster)
    faults += [*out_of_reach, *broker_quota_violations(kafka, cluster)]
    return Together(
        executors=sum(plan.totals.executors for plan in running.values()),
        pods=sum(plan.totals.pods for plan in running.values()),
        partitions=partitions,
        nodes=nodes,
        cost=bill_of(nodes, [plan.state.checkpoint for plan in jobs.values()], [kafka] if kafka else [], cluster, partitions),
        kafka=kafka,
        feasible=not faults and all(plan.feasible for plan in (*jobs.values(), *running.values())),
        violations=tuple(faults),
    )


def _placed(running: Mapping[str, Workload], cluster: Cluster) -> tuple[NodesPlan, list[Violation]]:
    """The nodes of all pods, and the violations of those that have none."""
    groups = [group for name, plan in running.items() for group in pod_groups(plan.pods, plan.spark_conf, cluster, name)]
    allocations = {f"{name}/{EXECUTOR}": allocation_of(plan.spark_conf) for name, plan in running.items()}
    nodes = plan_nodes(groups, cluster, allocations)
    disks = {f"{name}/{EXECUTOR}": plan.executor_disk for name, plan in running.items()}
    nodes = nodes.model_copy(update={"root_volume": planned_root_volume(nodes, disks, cluster)})
    # Of jobs alone: the executors of a session follow from those of several jobs.
    given = {name: plan for name, plan in running.items() if isinstance(plan, Plan) and plan.parallelism.source != "load"}
    slots = {f"{name}/{EXECUTOR}": plan.pods.executor.slots or 1 for name, plan in given.items()}
    faults = [*cluster_violations(Wanted(groups, cluster, allocations), nodes, slots), *root_volume_violations(nodes, disks, cluster)]
    return nodes, [fault for _, fault in faults]
