"""The tasks that read files: how Spark divides them into partitions of about `spark.sql.files.maxPartitionBytes`.

Source: Spark 4.3.0, FilePartition.maxSplitBytes and FilePartition.getFilePartitions, PartitionedFileUtil.splitFiles and
CoarseGrainedSchedulerBackend.defaultParallelism; tests/jobs/spark/test_file_splits.py holds the numbers against Spark itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.spark_settings import SparkSettings

# Source: Spark 4.3.0, CoarseGrainedSchedulerBackend.defaultParallelism: at least this, however few cores there are.
LEAST_PARALLELISM = 2

Binding = Literal["maxPartitionBytes", "openCostInBytes", "the files' share of a core", "maxPartitionNum"]


class FilesInput(BaseModel):
    """The files that a source reads.

    Args:
        files: number of them, all of the same size.
        size_bytes: of all of them together, at least one byte each.
        files_per_batch: the most that a micro-batch reads; None: all that there are.
        splittable: whether a file can be read by several tasks; compressed text can't.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    files: Annotated[int, Field(ge=1)]
    size_bytes: Annotated[int, Field(ge=1)]
    files_per_batch: Annotated[int, Field(ge=1)] | None = None
    splittable: bool = True


class FilesRead(BaseModel):
    """The stage that reads the files of one micro-batch.

    Args:
        files: files of all micro-batches.
        size_bytes: bytes of all of them.
        micro_batches: that read them; the last may have fewer files.
        files_per_batch: files of a full micro-batch.
        split_bytes: the longest part of a file that a task reads, ``maxSplitBytes``.
        splits: parts of files in a micro-batch.
        tasks: partitions of a micro-batch, each a task with one or more parts.
        waves: rounds of tasks over all slots.
        binding: what the size of a split is by.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    files: int
    size_bytes: int
    micro_batches: int
    files_per_batch: int
    split_bytes: int
    splits: int
    tasks: int
    waves: int
    binding: Binding


def files_read(given: FilesInput, settings: SparkSettings, cores: int, slots: int) -> FilesRead:
    """The stage that reads files.

    Args:
        given: the files.
        settings: of the job.
        cores: ``spark.executor.cores`` of all executors, by which Spark divides small inputs.
        slots: tasks at a time, 1 or more.
    """
    per_batch = min(given.files, given.files_per_batch or given.files)
    file_bytes = given.size_bytes // given.files
    read_bytes = given.size_bytes if per_batch == given.files else file_bytes * per_batch
    split_bytes, binding = _split_bytes(read_bytes, per_batch, settings, cores)
    parts = _parts(file_bytes, per_batch, split_bytes if given.splittable else file_bytes)
    tasks = _packed(parts, split_bytes, settings.files_open_cost_bytes)
    most = settings.files_max_partitions
    if most is not None and tasks > most:
        total_bytes = sum((length + settings.files_open_cost_bytes) * count for length, count in parts)
        tasks, binding = _packed(parts, -(-total_bytes // most), settings.files_open_cost_bytes), "maxPartitionNum"
    return FilesRead(
        files=given.files,
        size_bytes=given.size_bytes,
        micro_batches=-(-given.files // per_batch),
        files_per_batch=per_batch,
        split_bytes=split_bytes,
        splits=sum(count for _, count in parts),
        tasks=tasks,
        waves=-(-tasks // slots),
        binding=binding,
    )


def least_partitions(settings: SparkSettings, cores: int) -> int:
    """The partitions that Spark makes of a small input at least, if its files allow it.

    Args:
        settings: of the job.
        cores: of all executors.
    """
    default = settings.default_parallelism or max(cores, LEAST_PARALLELISM)
    return settings.files_min_partitions or settings.leaf_parallelism or default


def _split_bytes(read_bytes: int, files: int, settings: SparkSettings, cores: int) -> tuple[int, Binding]:
    """min(maxPartitionBytes, max(openCostInBytes, bytes and opening costs / least number of partitions))."""
    open_bytes, most = settings.files_open_cost_bytes, settings.files_partition_bytes
    share = max(1, (read_bytes + files * open_bytes) // least_partitions(settings, cores))
    if most <= max(open_bytes, share):
        return most, "maxPartitionBytes"
    return (share, "the files' share of a core") if share > open_bytes else (open_bytes, "openCostInBytes")


def _parts(file_bytes: int, files: int, split_bytes: int) -> list[tuple[int, int]]:
    """Length in bytes and number of the parts of files, the longest first, as Spark sorts them."""
    whole, rest = divmod(file_bytes, split_bytes)
    parts = [(split_bytes, whole * files), (rest, files)]
    return [(length, count) for length, count in parts if length and count]


def _packed(parts: list[tuple[int, int]], most_bytes: int, open_bytes: int) -> int:
    """Partitions that the parts fill, in their order. A part that would exceed `most_bytes` begins another; each adds the opening cost."""
    partitions, filled = 1, 0
    for length, count in parts:
        fitting = _fitting(length, filled, most_bytes, open_bytes)
        if count <= fitting:
            filled += count * (length + open_bytes)
            continue
        each = max(1, _fitting(length, 0, most_bytes, open_bytes))
        # An empty partition takes a part of any length.
        left = count - (max(1, fitting) if not filled else fitting)
        if left:
            partitions += -(-left // each)
            filled = ((left - 1) % each + 1) * (length + open_bytes)
        else:
            filled = length + open_bytes
    return partitions


def _fitting(length: int, filled: int, most_bytes: int, open_bytes: int) -> int:
    """Further parts of a length that a partition takes."""
    return 0 if filled + length > most_bytes else (most_bytes - filled - length) // (length + open_bytes) + 1
