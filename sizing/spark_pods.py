"""The size of Spark's pods, and the heap for a pod of a given size.

Spark sums a pod's memory from its settings: heap + overhead + off-heap + Python's memory. `executor_memory` and `driver_memory`
implement these rules. `fit_executor` and `fit_driver` are the inverse: from the pod to the largest heap, with an absolute overhead, so
that client mode, cluster mode and a SparkApplication all create the same pod.

Source: Spark 4.1.1, BasicExecutorFeatureStep, BasicDriverFeatureStep and ResourceProfile.calculateOverHeadMemory; 4.3.0's own classes
return the same numbers (run by tests/sizing/test_spark_agrees.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from penstock.sizing.spark_settings import JVM_OVERHEAD_FACTOR, PodSettings, SparkSettings

# Source: Spark 4.1.1, UnifiedMemoryManager: RESERVED_SYSTEM_MEMORY_BYTES (300 MiB) * 1.5 is the minimum memory.
MIN_HEAP_MIB = 450
# Below this heap the result depends on the collector: the JVM reports less than -Xmx, and Spark compares the reported value.
# Source: Runtime.maxMemory() of OpenJDK 17 with -Xmx450m, measured 2026-11-21: G1 450 MiB, Serial 435 MiB, Parallel 400 MiB (8/9 of it).
SAFE_HEAP_MIB = 507
# Source: Spark 4.1.1, BasicDriverFeatureStep.NON_JVM_MEMORY_OVERHEAD_FACTOR, used for Python and R in cluster mode.
PYTHON_OVERHEAD_FACTOR = 0.4
# Ours: a driver that plans batches and holds no data; also the pod of the first seed job.
DEFAULT_DRIVER_POD_MIB = 2048
DEFAULT_DRIVER_CPU_MILLICORES = 1000
# Besides its heap: the JVM 480 MiB, the Python process of the app 170, with the files that they map. With 585 the kernel killed a driver
# whose heap was full. Source: benchmarks.pod_memory on 2026-11-25, Spark 4.3.0; docs/sizing.md has the table.
DRIVER_OVERHEAD_MIB = 768


class PodMemory(BaseModel):
    """The components of a pod's memory, in MiB; request and limit are `total_mib`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    heap_mib: int
    overhead_mib: int
    off_heap_mib: int = 0
    pyspark_mib: int = 0

    @property
    def total_mib(self) -> int:
        """The pod's memory in MiB."""
        return self.heap_mib + self.overhead_mib + self.off_heap_mib + self.pyspark_mib


def executor_memory(settings: SparkSettings, heap_mib: int, *, python: bool = True) -> PodMemory:
    """The memory of an executor's pod in Spark.

    Args:
        settings: with the deploy mode, which determines the default factor and Python's memory.
        heap_mib: ``spark.executor.memory``.
        python: whether the app is PySpark.
    """
    pyspark_mib = settings.pyspark_mib if python and settings.deploy_mode == "cluster" else 0
    overhead_mib = _overhead_mib(settings.executor, spark_factor(settings.executor, settings, python=python), heap_mib)
    return PodMemory(heap_mib=heap_mib, overhead_mib=overhead_mib, off_heap_mib=settings.off_heap_mib, pyspark_mib=pyspark_mib)


def driver_memory(settings: SparkSettings, heap_mib: int, *, python: bool = True) -> PodMemory:
    """The memory of the driver's pod, as in Spark in cluster mode and in Penstock in client mode; arguments as in `executor_memory`.

    Off-heap memory is not added to a driver.
    """
    overhead_mib = _overhead_mib(settings.driver, spark_factor(settings.driver, settings, python=python), heap_mib)
    return PodMemory(heap_mib=heap_mib, overhead_mib=overhead_mib)


def spark_factor(own: PodSettings, settings: SparkSettings, *, python: bool = True) -> float:
    """The factor that Spark uses for the overhead: the pod's own, the common one, or the mode's default."""
    default = PYTHON_OVERHEAD_FACTOR if python and settings.deploy_mode == "cluster" else JVM_OVERHEAD_FACTOR
    return own.overhead_factor or settings.overhead_factor or default


def planned_factor(own: PodSettings, settings: SparkSettings) -> float:
    """The factor of a plan for a pod of a given size: the user's, otherwise one with room for Python workers in either mode."""
    return own.overhead_factor or settings.overhead_factor or PYTHON_OVERHEAD_FACTOR


def fit_executor(settings: SparkSettings, pod_mib: int) -> PodMemory:
    """The executor with the largest heap that fits a pod.

    Args:
        settings: an overhead or a factor in it is respected; otherwise the overhead is 0.4 of the heap, at least the minimum overhead,
            and in client mode at least ``spark.executor.pyspark.memory``, which Spark itself adds in cluster mode only.
        pod_mib: memory of the pod.

    Returns:
        A pod of exactly `pod_mib`, except in two cases that the caller must reject: a heap below `MIN_HEAP_MIB`, and a user's factor
        that rounds past `pod_mib`.
    """
    return _fit(lambda heap_mib: planned_executor(settings, heap_mib), settings.executor, settings, pod_mib)


def fit_driver(settings: SparkSettings, pod_mib: int) -> PodMemory:
    """The driver with the largest heap that fits a pod; as `fit_executor`, without off-heap and Python's memory."""
    return _fit(lambda heap_mib: planned_driver(settings, heap_mib), settings.driver, settings, pod_mib)


def planned_executor(settings: SparkSettings, heap_mib: int) -> PodMemory:
    """The smallest executor pod of a plan for a heap when the pod's memory is given: `fit_executor` chooses among these."""
    cluster = settings.deploy_mode == "cluster"
    python_room_mib = 0 if cluster or has_own_overhead(settings.executor, settings) else settings.pyspark_mib
    return PodMemory(
        heap_mib=heap_mib,
        overhead_mib=max(_overhead_mib(settings.executor, planned_factor(settings.executor, settings), heap_mib), python_room_mib),
        off_heap_mib=settings.off_heap_mib,
        pyspark_mib=settings.pyspark_mib if cluster else 0,
    )


def planned_driver(settings: SparkSettings, heap_mib: int) -> PodMemory:
    """As `planned_executor`, for the driver; a heap that is not a small one has `DRIVER_OVERHEAD_MIB` beside it."""
    overhead_mib = _overhead_mib(settings.driver, planned_factor(settings.driver, settings), heap_mib)
    if heap_mib > SAFE_HEAP_MIB and not has_own_overhead(settings.driver, settings):
        overhead_mib = max(overhead_mib, DRIVER_OVERHEAD_MIB)
    return PodMemory(heap_mib=heap_mib, overhead_mib=overhead_mib)


def has_own_overhead(own: PodSettings, settings: SparkSettings) -> bool:
    """Whether the user set the overhead or a factor."""
    return own.overhead_mib is not None or own.overhead_factor is not None or settings.overhead_factor is not None


def _overhead_mib(own: PodSettings, factor: float, heap_mib: int) -> int:
    # Spark's (factor * memory).toInt truncates, as int does, on the same doubles.
    return own.overhead_mib if own.overhead_mib is not None else max(int(factor * heap_mib), own.min_overhead_mib)


def _fit(pod_of: Callable[[int], PodMemory], own: PodSettings, settings: SparkSettings, pod_mib: int) -> PodMemory:
    fitting = bisect_right(range(pod_mib + 1), pod_mib, key=lambda heap_mib: pod_of(heap_mib).total_mib)
    pod = pod_of(max(0, fitting - 1))
    # The remainder of rounding is added to the overhead; a user's own rule is not changed.
    left_mib = 0 if has_own_overhead(own, settings) else max(0, pod_mib - pod.total_mib)
    return pod.model_copy(update={"overhead_mib": pod.overhead_mib + left_mib})
