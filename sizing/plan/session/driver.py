"""The driver of a session: those of its jobs, added, or one that the environment gives it."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sizing.driver import DriverNeeds
from penstock.sizing.ephemeral_storage import StorageNeeds, driver_storage
from penstock.sizing.plan.session.errors import SessionDriverTooSmall
from penstock.sizing.plan.session.planned import DriverSize
from penstock.sizing.planned import Plan, PlannedPod
from penstock.sizing.spark_pods import DEFAULT_DRIVER_POD_MIB, DRIVER_OVERHEAD_MIB
from penstock.sizing.units import cpu_text
from penstock.sizing.violation import Violation, violated


def driver_of(jobs: Sequence[Plan], size: DriverSize | None) -> tuple[PlannedPod, list[Violation]]:
    """The driver's pod, and SIZ-062 for a given one that is smaller than the jobs' drivers together.

    Args:
        jobs: their plans.
        size: as the environment gives it; None: the sum.
    """
    added = _added([plan.pods.driver for plan in jobs])
    return (added, []) if size is None else _given(added, size)


def session_driver_needs(jobs: Sequence[Plan]) -> DriverNeeds:
    """What the driver's heap has to hold for all jobs."""
    return DriverNeeds(**{part: sum(getattr(plan.driver_needs, part) for plan in jobs) for part in DriverNeeds.model_fields})


def session_driver_storage(jobs: Sequence[Plan]) -> StorageNeeds:
    """The ephemeral storage of the driver for all jobs, which have one container's log between them."""
    each = [plan.driver_storage for plan in jobs]
    parts = {
        part: sum(getattr(one, part) for one in each) for part in ("state_mib", "shuffle_mib", "spill_mib", "uploads_mib", "files_mib")
    }
    logs_mib = max(one.logs_mib for one in each)
    return StorageNeeds(**parts, logs_mib=logs_mib, needed_mib=sum(parts.values()) + logs_mib, known=all(one.known for one in each))


def _added(pods: Sequence[PlannedPod]) -> PlannedPod:
    sizes = ("memory_mib", "heap_mib", "overhead_mib", "request_cpu_millicores", "request_ephemeral_storage_mib")
    limits = ("limit_cpu_millicores", "limit_ephemeral_storage_mib")
    added: dict[str, int | None] = {size: sum(getattr(pod, size) for pod in pods) for size in sizes}
    for limit in limits:
        given = [getattr(pod, limit) for pod in pods]
        added[limit] = None if None in given else sum(given)
    return pods[0].model_copy(update=added)


def _given(added: PlannedPod, size: DriverSize) -> tuple[PlannedPod, list[Violation]]:
    """A driver of a given size. What is in it follows from its size alone, so that a job more does not restart it: heap and overhead in the
    ratio of a default driver, and the ephemeral storage of as many default drivers as its memory has.
    """
    overhead_mib = -(-size.memory_mib * DRIVER_OVERHEAD_MIB // DEFAULT_DRIVER_POD_MIB)
    storage_mib = max(added.request_ephemeral_storage_mib, _storage_of(size.memory_mib))
    pod = added.model_copy(
        update={
            "memory_mib": size.memory_mib,
            "heap_mib": size.memory_mib - overhead_mib,
            "overhead_mib": overhead_mib,
            "request_cpu_millicores": size.cpu_millicores,
            "limit_cpu_millicores": None,
            "request_ephemeral_storage_mib": storage_mib,
            "limit_ephemeral_storage_mib": None if added.limit_ephemeral_storage_mib is None else storage_mib,
        }
    )
    return pod, [*_too_little_memory(added, pod), *_too_little_cpu(added, pod)]


def _storage_of(memory_mib: int) -> int:
    return driver_storage().needed_mib * memory_mib // DEFAULT_DRIVER_POD_MIB


def _too_little_memory(added: PlannedPod, pod: PlannedPod) -> list[Violation]:
    if pod.heap_mib >= added.heap_mib and pod.overhead_mib >= added.overhead_mib:
        return []
    heap_share, overhead_share = DEFAULT_DRIVER_POD_MIB - DRIVER_OVERHEAD_MIB, DRIVER_OVERHEAD_MIB
    # Rounded up to what leaves both of them enough.
    least_mib = max(
        -(-added.heap_mib * DEFAULT_DRIVER_POD_MIB // heap_share), -(-added.overhead_mib * DEFAULT_DRIVER_POD_MIB // overhead_share)
    )
    given = f"{pod.memory_mib:,} MiB, with {pod.heap_mib:,} of heap and {pod.overhead_mib:,} of overhead"
    need = f"a heap of {added.heap_mib:,} MiB and an overhead of {added.overhead_mib:,}, the sum of its jobs' drivers"
    return [violated(SessionDriverTooSmall, path="driver.memory", given=given, need=need, fix=f'memory: "{least_mib + 1}m" or more')]


def _too_little_cpu(added: PlannedPod, pod: PlannedPod) -> list[Violation]:
    if pod.request_cpu_millicores >= added.request_cpu_millicores:
        return []
    need = f"{cpu_text(added.request_cpu_millicores)}, the sum of its jobs' drivers"
    given = cpu_text(pod.request_cpu_millicores)
    fix = f'cores: "{added.request_cpu_millicores}m" or more'
    return [violated(SessionDriverTooSmall, path="driver.cores", given=given, need=need, fix=fix)]
