"""A job's executors in other shapes: half and twice the slots each, with cores and memory to match."""

from __future__ import annotations

from fractions import Fraction

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.usd import UsdRange
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan.planning import plan
from penstock.sizing.planned import Plan
from penstock.sizing.targets import ExecutorTarget, Targets

_OVERHEAD = "spark.executor.memoryOverhead"
# They follow from the shape.
_OF_THE_SHAPE = {
    "spark.executor.cores",
    "spark.executor.memory",
    _OVERHEAD,
    "spark.executor.instances",
    "spark.kubernetes.executor.request.cores",
    "spark.kubernetes.executor.limit.cores",
}


class Alternative(BaseModel):
    """A plan with executors of a shape.

    Args:
        slots: of an executor.
        executors: their number.
        executor_memory_mib: memory of all executor pods, in MiB.
        needed_overhead_mib: what the overheads of all executors have to hold, in MiB.
        nodes: after a first start; None: the environment has no cluster.
        usd_per_month: cost of the job; None: as with `nodes`, or prices are unknown.
        feasible: whether all targets are met.
        planned: whether it is the plan itself.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    slots: int
    executors: int
    executor_memory_mib: int
    needed_overhead_mib: int
    nodes: int | None
    usd_per_month: UsdRange | None
    feasible: bool
    planned: bool


def alternatives(targets: Targets, planned: Plan, cluster: Cluster | None) -> tuple[Alternative, ...]:
    """The plan and those of its executors halved and doubled, the fewest slots first; only the plan where no other shape can be planned.

    Memory and cores that the targets set, or Spark settings, are scaled with the slots; a load decides the memory of each shape anew.

    Args:
        targets: of the job.
        planned: its plan.
        cluster: where it runs; None: pods only.
    """
    slots = planned.pods.executor.slots or 1
    most = max(slots, planned.parallelism.value)
    shapes = sorted({-(-slots // 2), slots, min(2 * slots, most)})
    plans = ((shape, planned if shape == slots else _reshaped(targets, planned, cluster, Fraction(shape, slots))) for shape in shapes)
    return tuple(_alternative(shape, one, planned=shape == slots) for shape, one in plans if one is not None)


def _reshaped(targets: Targets, planned: Plan, cluster: Cluster | None, ratio: Fraction) -> Plan | None:
    """The plan with executors of another size; None: Spark has none of that size."""
    cores = int(planned.spark_conf["spark.executor.cores"]) * ratio
    if cores.denominator != 1:
        return None
    pod, asked = planned.pods.executor, targets.executor
    executor = ExecutorTarget(
        slots=int(cores),
        cpu_millicores=max(1, round(pod.request_cpu_millicores * ratio)),
        memory_mib=None if _decided_by_load(targets) else max(1, round(pod.memory_mib * ratio)),
        storage_mib=None if asked.storage_mib is None else max(1, round(asked.storage_mib * ratio)),
        spread=asked.spread,
    )
    conf = {key: value for key, value in targets.spark_conf.items() if key not in _OF_THE_SHAPE}
    if _OVERHEAD in targets.spark_conf:
        conf[_OVERHEAD] = f"{max(1, round(pod.overhead_mib * ratio))}m"
    try:
        return plan(targets.model_copy(update={"executor": executor, "spark_conf": conf}), cluster)
    except PenstockError:
        return None


def _decided_by_load(targets: Targets) -> bool:
    return targets.executor.undecided and "spark.executor.memory" not in targets.spark_conf


def _alternative(slots: int, one: Plan, *, planned: bool) -> Alternative:
    return Alternative(
        slots=slots,
        executors=one.totals.executors,
        executor_memory_mib=one.totals.executor_memory_mib,
        needed_overhead_mib=one.totals.executors * one.executor_overhead.needed_mib,
        nodes=None if one.nodes is None else one.nodes.staged.nodes,
        usd_per_month=None if one.cost is None else one.cost.total.usd_per_month,
        feasible=one.feasible,
        planned=planned,
    )
