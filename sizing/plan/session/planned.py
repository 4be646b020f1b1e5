"""The model of a session's plan."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.billed import Bill
from penstock.sizing.disk_throughput import DiskThroughput
from penstock.sizing.driver import DriverNeeds
from penstock.sizing.ephemeral_storage import StorageNeeds
from penstock.sizing.overhead import ExecutorOverhead
from penstock.sizing.planned import SCHEMA_VERSION, Pods, Totals
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.violation import Violation


class DriverSize(BaseModel):
    """The driver that a session is given in place of the sum of its jobs' drivers.

    Args:
        cpu_millicores: CPU request of its pod.
        memory_mib: memory of its pod.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    cpu_millicores: int
    memory_mib: int


class SessionPlan(BaseModel):
    """What a session runs in: one driver, and the executors of all its jobs. What concerns one job is in the job's own plan.

    Args:
        schema_version: version of this document.
        jobs: their names.
        totals: of the pods.
        pods: of the session.
        executor_overhead: what the overhead of an executor has to hold.
        driver_needs: what the driver's memory has to hold.
        executor_storage: what an executor's ephemeral storage has to hold.
        executor_disk: what an executor writes to its disk and reads from it per second.
        driver_storage: what the driver's ephemeral storage has to hold.
        tasks_at_a_time: maximum number of concurrent tasks, of all jobs.
        spark_conf: settings of the driver and the executors.
        job_conf: job -> settings of its Spark session.
        nodes: nodes that Karpenter creates; None: the environment has no cluster, or its instance types are unknown.
        cost: of the session alone in its environment; None: see `nodes`, or the region's prices are unknown.
        feasible: whether all targets are met.
        violations: the violations otherwise, without those of the jobs' own plans.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    schema_version: int = SCHEMA_VERSION
    jobs: tuple[str, ...]
    totals: Totals
    pods: Pods
    executor_overhead: ExecutorOverhead
    driver_needs: DriverNeeds
    executor_storage: StorageNeeds
    executor_disk: DiskThroughput
    driver_storage: StorageNeeds
    tasks_at_a_time: int
    spark_conf: dict[str, str]
    job_conf: dict[str, dict[str, str]]
    nodes: NodesPlan | None = None
    cost: Bill | None = None
    feasible: bool
    violations: tuple[Violation, ...] = ()
