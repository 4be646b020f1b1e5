"""The executors of a session: those of its jobs, added, of one shape."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penstock.sizing.disk_throughput import DiskThroughput
from penstock.sizing.ephemeral_storage import StorageNeeds
from penstock.sizing.overhead import ExecutorOverhead
from penstock.sizing.plan.notes import overhead_text
from penstock.sizing.plan.session.errors import ExecutorsDiffer, SessionOverheadTooSmall
from penstock.sizing.planned import Plan, PlannedPod
from penstock.sizing.units import cpu_text, memory_text
from penstock.sizing.violation import Violation, violated


def executor_of(jobs: Mapping[str, Plan], storage: StorageNeeds) -> PlannedPod:
    """The executors of a session: as many as the jobs have together, each of the first job's shape.

    Args:
        jobs: job -> its plan.
        storage: that one of them needs.
    """
    pods = [plan.pods.executor for plan in jobs.values()]
    request_mib = max(pod.request_ephemeral_storage_mib for pod in pods)
    if all(plan.pods.executor.request_ephemeral_storage_mib >= plan.executor_storage.needed_mib for plan in jobs.values()):
        # None of the specs gives its executors less than they need.
        request_mib = max(request_mib, storage.needed_mib)
    limits = [pod.limit_ephemeral_storage_mib for pod in pods]
    return pods[0].model_copy(
        update={
            "count": sum(pod.count for pod in pods),
            "request_ephemeral_storage_mib": request_mib,
            "limit_ephemeral_storage_mib": None if None in limits else request_mib,
        }
    )


def executor_violations(jobs: Mapping[str, Plan]) -> list[Violation]:
    """SIZ-060 for each job whose executors are not those of the first one.

    Args:
        jobs: job -> its plan.
    """
    (first, of_first), *others = ((name, _shape(plan)) for name, plan in jobs.items())
    violations = []
    for name, shape in others:
        differing = [what for what, value in shape.items() if value != of_first[what]]
        if differing:
            said = (f"{job} has {', '.join(f'{what} {of[what]}' for what in differing)}" for job, of in ((first, of_first), (name, shape)))
            need = "the same executors for all jobs of the session, which run on all of them"
            fix = (
                "state the same executor in their specs: slots, and memory or heap with spark.executor.memoryOverhead in sparkConf, "
                "where it follows from the load otherwise"
            )
            violations.append(violated(ExecutorsDiffer, path=name, given="; ".join(said), need=need, fix=fix))
    return violations


def _shape(plan: Plan) -> dict[str, str]:
    """All that an executor is but its ephemeral storage, which a session can add up."""
    pod, spread = plan.pods.executor, plan.pods.executor_spread
    limit = pod.limit_cpu_millicores
    return {
        "slots": str(pod.slots),
        "memory": memory_text(pod.memory_mib),
        "heap": memory_text(pod.heap_mib),
        "overhead": memory_text(pod.overhead_mib),
        "off-heap memory": memory_text(pod.off_heap_mib),
        "Python's memory": memory_text(pod.pyspark_mib),
        "CPU": cpu_text(pod.request_cpu_millicores),
        "CPU limit": "none" if limit is None else cpu_text(limit),
        "spread": "none" if spread is None else f"{spread.nodes} over nodes and {spread.zones} over zones",
    }


def session_overhead(jobs: Mapping[str, Plan]) -> ExecutorOverhead:
    """What the overhead of an executor has to hold: one JVM, RocksDB for the job with the most of it, and Python for each job.

    Each job has a daemon and workers of its own on each executor. The states of all jobs are spread over the sum of their executors, so
    that one has no more of them than an executor of the job with the most has without the session.

    Args:
        jobs: job -> its plan.
    """
    each = [plan.executor_overhead for plan in jobs.values()]
    jvm_mib, rocksdb_mib = max(one.jvm_mib for one in each), max(one.rocksdb_mib for one in each)
    python_mib, arrow_mib = sum(one.python_mib for one in each), sum(one.arrow_mib for one in each)
    return ExecutorOverhead(
        jvm_mib=jvm_mib,
        rocksdb_mib=rocksdb_mib,
        python_workers=sum(one.python_workers for one in each),
        python_mib=python_mib,
        arrow_mib=arrow_mib,
        needed_mib=jvm_mib + rocksdb_mib + python_mib + arrow_mib,
    )


def overhead_violations(jobs: Mapping[str, Plan], needed: ExecutorOverhead) -> list[Violation]:
    """SIZ-061 where the overhead that the jobs' executors have does not hold what they need together; of one job its own plan says so.

    Args:
        jobs: job -> its plan.
        needed: by the session.
    """
    pod = next(iter(jobs.values())).pods.executor
    has_mib = pod.overhead_mib + pod.pyspark_mib
    if len(jobs) == 1 or has_mib >= needed.needed_mib:
        return []
    need = f"{needed.needed_mib:,} MiB for {len(jobs)} jobs: {overhead_text(needed)}"
    fix = f'spark.executor.memoryOverhead: "{needed.needed_mib}m" in the sparkConf of each of them, or fewer slots, or fewer jobs'
    return [violated(SessionOverheadTooSmall, path=", ".join(jobs), given=f"{has_mib:,} MiB", need=need, fix=fix)]


def session_disk(jobs: Mapping[str, Plan]) -> DiskThroughput:
    """The disk throughput of an executor: its share of what all jobs write and read per second.

    Args:
        jobs: job -> its plan.
    """
    executors = sum(plan.pods.executor.count for plan in jobs.values())

    def share(part: str) -> float:
        return sum(float(getattr(plan.executor_disk, part)) * plan.pods.executor.count for plan in jobs.values()) / executors

    parts = {part: round(share(part), 2) for part in ("shuffle_mibps", "spill_mibps", "state_mibps", "uploads_mibps", "mibps")}
    return DiskThroughput(**parts, iops=math.ceil(share("iops")), known=all(plan.executor_disk.known for plan in jobs.values()))


def session_storage(jobs: Mapping[str, Plan]) -> StorageNeeds:
    """The ephemeral storage of an executor: its share of what all jobs write, when another executor is lost.

    Args:
        jobs: job -> its plan.
    """
    left = max(1, sum(plan.pods.executor.count for plan in jobs.values()) - 1)

    def share(part: str) -> int:
        written: int = sum(getattr(plan.executor_storage, part) * max(1, plan.pods.executor.count - 1) for plan in jobs.values())
        return -(-written // left)

    parts = {part: share(part) for part in ("state_mib", "shuffle_mib", "spill_mib", "uploads_mib")}
    first = next(iter(jobs.values())).executor_storage
    needed_mib = sum(parts.values()) + first.files_mib + first.logs_mib
    known = all(plan.executor_storage.known for plan in jobs.values())
    return StorageNeeds(**parts, files_mib=first.files_mib, logs_mib=first.logs_mib, needed_mib=needed_mib, known=known)
