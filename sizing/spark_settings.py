"""The Spark settings that affect pods and tasks, parsed as Spark does.

Source: Spark 4.1.1's ``internal/config/package.scala``, ``deploy/k8s/Config.scala`` and ``JavaUtils.byteStringAs``, and for the
differences the code of 4.3.0's own jars, run on the same settings (2026-11-21): 4.3.0 accepts a fraction for ``spark.task.cpus`` and the
suffixes kib, mib, gib, tib and pib; otherwise the rules are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from penstock.sizing.units import MAX_DURATION_MS, MAX_MEMORY_BYTES, MIB, NotAQuantity, cpu_millicores

# Source: Spark 4.1.1, ResourceProfile.MEMORY_OVERHEAD_MIN_MIB and spark.{executor,driver}.minMemoryOverhead (since 4.0).
MIN_OVERHEAD_MIB = 384
# Source: Spark 4.1.1, spark.kubernetes.memoryOverheadFactor's default.
JVM_OVERHEAD_FACTOR = 0.1
# Source: Spark 4.2 and later, spark.kubernetes.allocation.batch.size and spark.kubernetes.allocation.batch.delay.
ALLOCATION_BATCH_SIZE = 20
# Source: Spark 4.3.0, internal/config/Status.scala: the stages, and the tasks of each, that the status store keeps.
RETAINED_STAGES_KEY = "spark.ui.retainedStages"
RETAINED_STAGES, RETAINED_TASKS = 1_000, 100_000
ALLOCATION_BATCH_DELAY_MS = 1000
# Source: Spark 4.3.0, SQLConf.MIN_BATCHES_TO_RETAIN: micro-batches whose logs and state a query can go back to.
MIN_BATCHES_TO_RETAIN_KEY = "spark.sql.streaming.minBatchesToRetain"
MIN_BATCHES_TO_RETAIN = 100
# Source: Spark 4.1.1, spark.executor.memory and spark.driver.memory default to 1g.
DEFAULT_HEAP_MIB = 1024
# Source: Spark 4.3.0, SQLConf.FILES_MAX_PARTITION_BYTES and FILES_OPEN_COST_IN_BYTES.
FILES_PARTITION_BYTES, FILES_OPEN_COST_BYTES = 128 * MIB, 4 * MIB

# Source: Spark 4.1.1, JavaUtils.timeSuffixes, in microseconds.
_DURATIONS_US = {"us": 1, "ms": 10**3, "s": 10**6, "m": 6 * 10**7, "min": 6 * 10**7, "h": 36 * 10**8, "d": 864 * 10**8}
_EXPONENTS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
# More digits than any size has; Python refuses to convert beyond 4300.
_MAX_DIGITS = 30
# Source: Spark 4.3.0 accepts 9 decimals for spark.task.cpus.
_NANO = 1_000_000_000

_Count = Annotated[int, Field(ge=1)]
_Size = Annotated[int, Field(ge=0)]


class PodSettings(BaseModel):
    """The settings in sparkConf of one kind of pod, executor or driver; None: not set.

    Args:
        cores: ``spark.<kind>.cores``.
        heap_mib: ``spark.<kind>.memory``.
        overhead_mib: ``spark.<kind>.memoryOverhead``.
        overhead_factor: ``spark.<kind>.memoryOverheadFactor``, above 0.
        min_overhead_mib: ``spark.<kind>.minMemoryOverhead``.
        request_cpu_millicores: ``spark.kubernetes.<kind>.request.cores``.
        limit_cpu_millicores: ``spark.kubernetes.<kind>.limit.cores``.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    cores: _Count | None = None
    heap_mib: _Size | None = None
    overhead_mib: _Size | None = None
    overhead_factor: float | None = None
    min_overhead_mib: _Size = MIN_OVERHEAD_MIB
    request_cpu_millicores: _Count | None = None
    limit_cpu_millicores: _Count | None = None


class SparkSettings(BaseModel):
    """The settings in sparkConf that affect the plan.

    Args:
        deploy_mode: ``spark.submit.deployMode``; Penstock runs in client mode inside the driver's pod.
        executor: settings of executors.
        driver: settings of the driver.
        overhead_factor: ``spark.kubernetes.memoryOverheadFactor``, for both.
        off_heap_mib: ``spark.memory.offHeap.size`` if ``spark.memory.offHeap.enabled``, otherwise 0.
        pyspark_mib: ``spark.executor.pyspark.memory``, or 0.
        task_cpus: ``spark.task.cpus``.
        executor_instances: ``spark.executor.instances``.
        shuffle_partitions: ``spark.sql.shuffle.partitions``.
        batches_retained: ``spark.sql.streaming.minBatchesToRetain``.
        rocksdb_bounded: ``spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage``, on in Penstock's sessions.
        dynamic_allocation: ``spark.dynamicAllocation.enabled``.
        allocation_batch_size: ``spark.kubernetes.allocation.batch.size``, executors that Spark requests at once.
        allocation_batch_delay_ms: ``spark.kubernetes.allocation.batch.delay``, between two such batches.
        decommission: ``spark.decommission.enabled``.
        retained_stages: ``spark.ui.retainedStages``, stages that Spark's status store remembers; None: decided by the plan.
        retained_tasks: ``spark.ui.retainedTasks``, tasks of each of them.
        grace_period_s: ``spark.kubernetes.executor.terminationGracePeriodSeconds``; None: Spark's default.
        default_parallelism: ``spark.default.parallelism``; None: the cores of all executors.
        leaf_parallelism: ``spark.sql.leafNodeDefaultParallelism``; None: the default parallelism.
        files_partition_bytes: ``spark.sql.files.maxPartitionBytes``.
        files_open_cost_bytes: ``spark.sql.files.openCostInBytes``.
        files_min_partitions: ``spark.sql.files.minPartitionNum``; None: as `leaf_parallelism`.
        files_max_partitions: ``spark.sql.files.maxPartitionNum``; None: no limit.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    deploy_mode: Literal["client", "cluster"] = "client"
    executor: PodSettings = PodSettings()
    driver: PodSettings = PodSettings()
    overhead_factor: float | None = None
    off_heap_mib: _Size = 0
    pyspark_mib: _Size = 0
    task_cpus: Decimal = Decimal(1)
    executor_instances: _Count | None = None
    shuffle_partitions: _Count | None = None
    batches_retained: _Count = MIN_BATCHES_TO_RETAIN
    rocksdb_bounded: bool = True
    dynamic_allocation: bool = False
    allocation_batch_size: _Count = ALLOCATION_BATCH_SIZE
    allocation_batch_delay_ms: _Count = ALLOCATION_BATCH_DELAY_MS
    decommission: bool = False
    retained_stages: _Count | None = None
    retained_tasks: _Count = RETAINED_TASKS
    grace_period_s: _Size | None = None
    default_parallelism: _Count | None = None
    leaf_parallelism: _Count | None = None
    files_partition_bytes: _Count = FILES_PARTITION_BYTES
    files_open_cost_bytes: _Size = FILES_OPEN_COST_BYTES
    files_min_partitions: _Count | None = None
    files_max_partitions: _Count | None = None


def spark_mib(text: str) -> int:
    """Parses memory as Spark does, in MiB without a suffix; the remainder below a MiB is dropped.

    Returns:
        MiB, 0 or more.

    Raises:
        NotAQuantity: a fraction, a sign, inner whitespace, an unknown suffix, or more than 1024 TiB.
    """
    return _size(text, default="m") // MIB


def spark_size_mib(text: str) -> int:
    """As `spark_mib`, for settings in bytes without a suffix (``spark.memory.offHeap.size``)."""
    return _size(text, default="b") // MIB


def _size_bytes(text: str) -> int:
    return _size(text, default="b")


def _size_above_0(text: str) -> int:
    size = _size_bytes(text)
    if not size:
        raise NotAQuantity("a size of at least 1 byte", 'for example "128m"')
    return size


def read_settings(conf: Mapping[str, str]) -> tuple[SparkSettings, dict[str, NotAQuantity]]:
    """Parses the settings that affect the plan; the others are ignored.

    Returns:
        The valid settings, and for each invalid one its key with the reason.
    """
    read: dict[str, object] = {}
    pods: dict[str, dict[str, object]] = {"executor": {}, "driver": {}}
    faults: dict[str, NotAQuantity] = {}
    for key, setting in _SETTINGS.items():
        if key not in conf:
            continue
        try:
            (pods[setting.pod] if setting.pod else read)[setting.field] = setting.read(conf[key])
        except NotAQuantity as fault:
            faults[key] = fault
    off_heap = read.pop("off_heap", False)
    if not off_heap:
        read.pop("off_heap_mib", None)
    elif not read.get("off_heap_mib") and OFF_HEAP_SIZE not in faults:
        key = OFF_HEAP_SIZE if OFF_HEAP_SIZE in conf else OFF_HEAP_ENABLED
        faults[key] = NotAQuantity(
            f"{OFF_HEAP_SIZE} of at least 1 MiB if off-heap memory is enabled", f'{OFF_HEAP_SIZE}: "2g", or disable it'
        )
    pod_settings = {kind: PodSettings.model_validate(values) for kind, values in pods.items()}
    return SparkSettings.model_validate({**read, **pod_settings}), faults


def _size(text: str, default: str) -> int:
    match = re.fullmatch(r"([0-9]+)(?:([bkmgtp])|([kmgtp])i?b)?", text.strip().lower(), re.ASCII)
    if match is None or len(match.group(1)) > _MAX_DIGITS:
        raise NotAQuantity("a Spark size: an integer with b, k, m, g, t or p", 'for example "2048m" or "16g"')
    size: int = int(match.group(1)) * 1024 ** _EXPONENTS[match.group(2) or match.group(3) or default]
    if size > MAX_MEMORY_BYTES:
        raise NotAQuantity("at most 1024t", "check the suffix")
    return size


def _duration_us(text: str, default: str) -> int:
    match = re.fullmatch(r"([0-9]+)([a-z]*)", text.strip().lower(), re.ASCII)
    unit = None if match is None or len(match.group(1)) > _MAX_DIGITS else _DURATIONS_US.get(match.group(2) or default)
    if match is None or unit is None:
        raise NotAQuantity("a Spark duration: an integer with us, ms, s, m, min, h or d", 'for example "30s"')
    duration = int(match.group(1)) * unit
    if duration > MAX_DURATION_MS * 1000:
        raise NotAQuantity("at most 3650d", "check the suffix")
    return duration


def _seconds(text: str) -> int:
    return _duration_us(text, default="s") // 10**6


def _milliseconds_above_0(text: str) -> int:
    duration = _duration_us(text, default="ms") // 1000
    if not duration:
        raise NotAQuantity("a duration of at least 1ms", 'for example "1s"')
    return duration


def _whole(text: str) -> int:
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,9}", digits, re.ASCII) or int(digits) < 1:
        raise NotAQuantity("an integer greater than 0", "for example 4")
    return int(digits)


def _positive(text: str) -> Decimal:
    digits = text.strip()
    if not re.fullmatch(_NUMBER, digits, re.ASCII) or len(digits) > _MAX_DIGITS or not 0 < Decimal(digits) <= 1_000_000:
        raise NotAQuantity("a number greater than 0", "for example 0.4")
    return Decimal(digits)


def _task_cpus(text: str) -> Decimal:
    cpus = _positive(text)
    if cpus * _NANO % 1:
        raise NotAQuantity("a number greater than 0 with at most 9 decimals", "for example 1 or 0.5")
    return cpus


def _factor(text: str) -> float:
    return float(_positive(text))


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise NotAQuantity("true or false", "use true or false")
    return word == "true"


def _deploy_mode(text: str) -> str:
    if text not in ("client", "cluster"):
        raise NotAQuantity("client or cluster", "remove it: Penstock runs in client mode inside the driver's pod")
    return text


class _Setting(NamedTuple):
    pod: Literal["", "executor", "driver"]
    field: str
    read: Callable[[str], object]


OFF_HEAP_ENABLED = "spark.memory.offHeap.enabled"
OFF_HEAP_SIZE = "spark.memory.offHeap.size"

_SETTINGS: dict[str, _Setting] = {
    "spark.submit.deployMode": _Setting("", "deploy_mode", _deploy_mode),
    "spark.kubernetes.memoryOverheadFactor": _Setting("", "overhead_factor", _factor),
    OFF_HEAP_ENABLED: _Setting("", "off_heap", _boolean),
    OFF_HEAP_SIZE: _Setting("", "off_heap_mib", spark_size_mib),
    "spark.executor.pyspark.memory": _Setting("", "pyspark_mib", spark_mib),
    "spark.task.cpus": _Setting("", "task_cpus", _task_cpus),
    "spark.executor.instances": _Setting("", "executor_instances", _whole),
    "spark.sql.shuffle.partitions": _Setting("", "shuffle_partitions", _whole),
    MIN_BATCHES_TO_RETAIN_KEY: _Setting("", "batches_retained", _whole),
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": _Setting("", "rocksdb_bounded", _boolean),
    "spark.dynamicAllocation.enabled": _Setting("", "dynamic_allocation", _boolean),
    "spark.kubernetes.allocation.batch.size": _Setting("", "allocation_batch_size", _whole),
    "spark.kubernetes.allocation.batch.delay": _Setting("", "allocation_batch_delay_ms", _milliseconds_above_0),
    "spark.decommission.enabled": _Setting("", "decommission", _boolean),
    RETAINED_STAGES_KEY: _Setting("", "retained_stages", _whole),
    "spark.ui.retainedTasks": _Setting("", "retained_tasks", _whole),
    "spark.kubernetes.executor.terminationGracePeriodSeconds": _Setting("", "grace_period_s", _seconds),
    "spark.default.parallelism": _Setting("", "default_parallelism", _whole),
    "spark.sql.leafNodeDefaultParallelism": _Setting("", "leaf_parallelism", _whole),
    "spark.sql.files.maxPartitionBytes": _Setting("", "files_partition_bytes", _size_above_0),
    "spark.sql.files.openCostInBytes": _Setting("", "files_open_cost_bytes", _size_bytes),
    "spark.sql.files.minPartitionNum": _Setting("", "files_min_partitions", _whole),
    "spark.sql.files.maxPartitionNum": _Setting("", "files_max_partitions", _whole),
}
_KINDS: tuple[Literal["executor", "driver"], ...] = ("executor", "driver")
for _kind in _KINDS:
    _SETTINGS |= {
        f"spark.{_kind}.cores": _Setting(_kind, "cores", _whole),
        f"spark.{_kind}.memory": _Setting(_kind, "heap_mib", spark_mib),
        f"spark.{_kind}.memoryOverhead": _Setting(_kind, "overhead_mib", spark_mib),
        f"spark.{_kind}.memoryOverheadFactor": _Setting(_kind, "overhead_factor", _factor),
        f"spark.{_kind}.minMemoryOverhead": _Setting(_kind, "min_overhead_mib", spark_mib),
        f"spark.kubernetes.{_kind}.request.cores": _Setting(_kind, "request_cpu_millicores", cpu_millicores),
        f"spark.kubernetes.{_kind}.limit.cores": _Setting(_kind, "limit_cpu_millicores", cpu_millicores),
    }
