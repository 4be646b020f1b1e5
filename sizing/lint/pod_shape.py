"""Rules on the shape of a job's pods: slots, cores and heap against each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import LintedJob, Subject
from penstock.sizing.units import cpu_text, memory_text

# A slot that waits for a call or a read leaves its core to another one; beyond that, tasks only wait for each other.
SLOTS_A_CORE = 2
LEAST_TASK_MIB = 64
# Source: "Tuning Spark", Memory Management Overview: 300 MiB are reserved; spark.memory.fraction.
_RESERVED_MIB, _FRACTION = 300, 0.6
# Up to here G1 compresses object pointers, measured with OpenJDK 17: pointers of 32 bits to objects aligned at 8 bytes address 32 GiB, of
# which HotSpot keeps a region.
COMPRESSED_MIB = 32 * 1024 - 32
_ALIGNED_BYTES = 8
_ALIGNMENT = re.compile(r"-XX:ObjectAlignmentInBytes=(\d+)")
# Collectors that never compress pointers, and do not stop for a heap's size.
_CONCURRENT = re.compile(r"-XX:\+UseZGC")


@rule(
    "LINT-065",
    "warning",
    "more slots than cores",
    why="a slot is a thread that runs a task: beyond two per core, the tasks wait for each other, need memory all the same, and each "
    "micro-batch takes longer",
    fix="fewer slots, or more cores; only tasks that mostly wait for calls make use of more slots",
)
def crowded_cores(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0 runs spark.executor.cores / spark.task.cpus tasks, whatever CPU the pod has; Penstock's limit is two per core."""
    for job in subject.jobs:
        executor = job.plan.pods.executor
        slots, cpu_millicores = executor.slots or 1, executor.limit_cpu_millicores or executor.request_cpu_millicores
        carried = SLOTS_A_CORE * cpu_millicores // 1000
        if slots > max(1, carried):
            given = f"{slots} slots on {cpu_text(cpu_millicores)}"
            yield Fault(job.place("executor.slots", "executor.cores", "executor"), given, f"at most {SLOTS_A_CORE} slots per core")


@rule(
    "LINT-066",
    "warning",
    "little heap for each slot",
    why="the tasks of an executor share what the heap has for sorts, joins, aggregations and cached rows: tasks with little of it spill to "
    "disk, and micro-batches become small or fail for lack of memory",
    fix="more memory, or fewer slots for the executor",
)
def crowded_heap(subject: Subject) -> Iterator[Fault]:
    """Source: Spark 4.3.0, UnifiedMemoryManager: the tasks share 0.6 x (heap - 300 MiB); Penstock's limit is 64 MiB of it per slot. A
    load's own rules decide otherwise.
    """
    for job in subject.jobs:
        executor = job.plan.pods.executor
        slots = executor.slots or 1
        task_mib = int(max(0, executor.heap_mib - _RESERVED_MIB) * _FRACTION) // slots
        if task_mib < LEAST_TASK_MIB and not job.has_load:
            given = f"{task_mib} MiB for each of {slots} slots, of a heap of {memory_text(executor.heap_mib)}"
            need_mib = -(-LEAST_TASK_MIB * slots * 10 // 6) + _RESERVED_MIB
            where = job.place("executor.memory", "executor.heap", "executor.slots", "executor")
            yield Fault(where, given, f"{LEAST_TASK_MIB} MiB: a heap of {need_mib:,} MiB")


@rule(
    "LINT-068",
    "warning",
    "heap too large for compressed pointers",
    why="above about 32 GiB each object pointer takes 8 bytes instead of 4, so the same rows need more heap; and the garbage collector has "
    "more to trace and move while all tasks of the executor stand still",
    fix="more executors with fewer slots and a heap below 32 GiB; or -XX:ObjectAlignmentInBytes=16 or ZGC in extraJavaOptions, if measured",
)
def large_heap(subject: Subject) -> Iterator[Fault]:
    """Source: JDK 17, `java`, -XX:-UseCompressedOops: for heaps below 32 GB; Spark's hardware provisioning page: the JVM does not always
    behave well with more than 200 GiB.
    """
    for job in subject.jobs:
        for kind, pod in (("driver", job.plan.pods.driver), ("executor", job.plan.pods.executor)):
            options = _jvm_options(job, kind)
            largest_mib = COMPRESSED_MIB * _alignment(options) // _ALIGNED_BYTES
            if pod.heap_mib > largest_mib and not _CONCURRENT.search(options):
                where = job.place(f"{kind}.memory", f"{kind}.heap", kind)
                yield Fault(where, f"a heap of {pod.heap_mib:,} MiB for the {kind}", f"at most {largest_mib:,} MiB")


def _jvm_options(job: LintedJob, kind: str) -> str:
    conf = job.plan.spark_conf
    return " ".join(conf.get(f"spark.{kind}.{options}", "") for options in ("defaultJavaOptions", "extraJavaOptions"))


def _alignment(options: str) -> int:
    """The alignment of objects in bytes; the last option counts."""
    given = _ALIGNMENT.findall(options)
    return int(given[-1]) if given else _ALIGNED_BYTES
